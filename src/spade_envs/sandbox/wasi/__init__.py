"""CPython compiled to WebAssembly as the interpreter of generated code: strong isolation on every system.

A worker is a process that runs CPython's WASI build under wasmtime. The program inside sees one byte stream (the
sandbox's wire) and a clock; there is no function in its machine for files, sockets, processes or signals, and a memory
error in it stays in the machine's own memory. Where the system has them, the process is put into the same jail as a
native worker besides. Optional: ``pip install 'spade-envs[wasi]'``.
"""
