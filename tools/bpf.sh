#!/bin/sh
# Compiles the programs for the kernel from their sources, with clang and the headers of libbpf (Debian: clang,
# llvm, libbpf-dev), and notes which sources they are from. The objects are part of the project: users need no compiler.
set -eu
cd "$(dirname "$0")/../topologies/mininet_adapter/bpf"
for source in sources/*.bpf.c; do
    name=$(basename "$source" .c)
    clang -O2 -g -mcpu=v3 -target bpf -fdebug-compilation-dir=. "-ffile-prefix-map=$PWD=." \
        -I"/usr/include/$(uname -m)-linux-gnu" -c "$source" -o "objects/$name.o"
    llvm-strip --strip-debug "objects/$name.o"
done
sha256sum sources/* > objects/sources.sha256
