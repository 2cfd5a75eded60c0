"""The browser view: a memory, its environments to play and to replay, and training runs, on the loopback alone.

Pages are made on the server and work without scripts; `static/view.js` adds filtering while one types, keys, and the
refresh of running curves. Everything that others wrote (statements, sources, replies, reasons) reaches a page as
escaped text, and generated code runs in the sandbox only.
"""
