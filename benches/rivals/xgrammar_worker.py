"""xgrammar as a worker of the bench: a vocabulary file, then requests on standard input.

Needs `pip install xgrammar` (which brings torch). `rivals --python VENV/bin/python
--engines schemac,xgrammar` starts it; see src/protocol.rs for the lines and src/engine.rs for what is
timed. The set-up is what its documentation recommends: `GrammarCompiler.compile_json_schema` with the
default options, a `GrammarMatcher`, and `fill_next_token_bitmask` into one tensor that is kept.
"""

import json
import sys
from time import perf_counter_ns

import xgrammar as xgr

BATCH = 1_000


def tokenizer_info(path):
    words, ends = [], []
    with open(path) as file:
        for token, line in enumerate(file):
            word = json.loads(line)
            # Special tokens have no text here; the one way to say so is an empty one.
            words.append(b"" if word["special"] is not None else bytes.fromhex(word["bytes"]))
            if word["end"]:
                ends.append(token)
    raw = xgr.VocabType.RAW
    return xgr.TokenizerInfo(words, raw, vocab_size=len(words), stop_token_ids=ends), ends


class Worker:
    def __init__(self, path):
        self.info, self.ends = tokenizer_info(path)
        # Each schema is compiled afresh, in one thread as the others.
        self.compiler = xgr.GrammarCompiler(self.info, max_threads=1, cache_enabled=False)
        self.bitmask = xgr.allocate_token_bitmask(1, self.info.vocab_size)
        self.words = self.bitmask[0].numpy()

    def has(self, token):
        return (int(self.words[token >> 5]) >> (token & 31)) & 1 == 1

    def step(self, matcher, token):
        matcher.fill_next_token_bitmask(self.bitmask)
        return self.has(token) and matcher.accept_token(token)

    def answer(self, request):
        reply = {"masks": [], "accepted": []}
        patience = request["seconds"] * 1_000_000_000
        start = perf_counter_ns()
        try:
            grammar = self.compiler.compile_json_schema(request["schema"])
            xgr.GrammarMatcher(grammar).fill_next_token_bitmask(self.bitmask)
        except Exception as error:  # whatever it is, the schema is not compiled
            return {"error": str(error)[:200]}
        reply["first"] = perf_counter_ns() - start
        for tokens in request["tests"]:
            matcher = xgr.GrammarMatcher(grammar)
            accepted = True
            for token in tokens:
                before = perf_counter_ns()
                accepted = self.step(matcher, token)
                reply["masks"].append(perf_counter_ns() - before)
                if not accepted:
                    break
                if perf_counter_ns() - start > patience:
                    return {**reply, "timed_out": True}
            if accepted:
                matcher.fill_next_token_bitmask(self.bitmask)
                accepted = any(self.has(end) for end in self.ends)
            reply["accepted"].append(accepted)
        if request["warm"]:
            reply["warm"] = self.second_pass(grammar, request["tests"])
        return reply

    def second_pass(self, grammar, tests):
        batches, steps, time = [], 0, 0
        while not batches and any(tests):
            for tokens in tests:
                matcher = xgr.GrammarMatcher(grammar)
                start = perf_counter_ns()
                for token in tokens:
                    steps += 1
                    if not self.step(matcher, token):
                        break
                time += perf_counter_ns() - start
                if steps >= BATCH:
                    batches.append(time // steps)
                    steps, time = 0, 0
        return batches


def main():
    worker = Worker(sys.argv[1])
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(worker.answer(json.loads(line))), flush=True)


main()
