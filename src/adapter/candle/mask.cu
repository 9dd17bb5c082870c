// Sets the logits of illegal tokens to minus infinity. A row of logits for each blockIdx.y; a logit is
// read and written as bits, so that one kernel serves all types of its size.
//
// words: masks of per_mask words of 32 bits; bit i % 32 of word i / 32 is token i, 1 is legal.
// index: the number of each row's mask, or null: then row r has mask r * step.
// Tokens past the words, and all tokens of a row whose mask there is not, are illegal.
template <typename Bits>
__device__ void mask_row(Bits *logits, unsigned width, const unsigned *words, unsigned masks,
                         unsigned per_mask, const unsigned *index, unsigned step, Bits infinity) {
    const unsigned row = blockIdx.y;
    const unsigned mask = index ? index[row] : row * step;
    const unsigned known = mask < masks ? per_mask : 0;
    const unsigned *legal = words + (size_t)mask * per_mask;
    Bits *out = logits + (size_t)row * width;
    // Legal logits are not touched: a row costs the words and the stores.
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < width; i += gridDim.x * blockDim.x) {
        const unsigned word = i / 32 < known ? legal[i / 32] : 0;
        if (!(word >> (i % 32) & 1)) {
            out[i] = infinity;
        }
    }
}

extern "C" __global__ void schemac_mask_32(unsigned *logits, unsigned width, const unsigned *words,
                                           unsigned masks, unsigned per_mask, const unsigned *index,
                                           unsigned step, unsigned infinity) {
    mask_row(logits, width, words, masks, per_mask, index, step, infinity);
}

extern "C" __global__ void schemac_mask_16(unsigned short *logits, unsigned width,
                                           const unsigned *words, unsigned masks,
                                           unsigned per_mask, const unsigned *index, unsigned step,
                                           unsigned infinity) {
    mask_row(logits, width, words, masks, per_mask, index, step, (unsigned short)infinity);
}
