#!/usr/bin/env bash
# Compiles the CUDA kernel to PTX by nvcc and to machine code by ptxas, without a GPU. Takes the nvcc
# on the PATH, or one from Python packages (some 500 MB), which is kept in $CUDA_TOOLS. Exit status: 0 if
# the kernel compiles, 1 if not, 2 if no compiler can be had.
set -uo pipefail
cd "$(dirname "$0")/.."

kernel=src/adapter/candle/mask.cu
tools=${CUDA_TOOLS:-target/cuda-tools}
if ! command -v nvcc >/dev/null; then
    if [ ! -x "$tools/bin/pip" ] && ! python3 -m venv "$tools"; then
        echo "no nvcc, and no Python to fetch one with" >&2
        exit 2
    fi
    if ! "$tools/bin/pip" install --quiet nvidia-cuda-nvcc nvidia-cuda-crt nvidia-nvvm \
        nvidia-cuda-runtime nvidia-cuda-cccl; then
        echo "nvcc cannot be fetched" >&2
        exit 2
    fi
    nvcc=$(find "$(cd "$tools" && pwd)" -path '*/bin/nvcc' | head -n 1)
    export PATH=${nvcc%/nvcc}:$PATH
fi

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
for arch in 75 90; do
    nvcc -ptx -arch=compute_$arch -Werror all-warnings -o "$out/mask.ptx" "$kernel" || exit 1
    ptxas -arch=sm_$arch -v -o "$out/mask.cubin" "$out/mask.ptx" || exit 1
done
grep -o 'entry schemac_mask_[0-9]*' "$out/mask.ptx"
