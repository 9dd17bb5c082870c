//! Decoding under a grammar: policies, draws, and the sampler of one sequence.
