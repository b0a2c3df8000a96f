"""TLS to providers on TCP transports: little memory a connection, resumed sessions, handshakes in turns.

The event loop's own TLS keeps 10 KiB and more for each connection, up to 256 KiB for one that reads much. Here the
connections of a worker share one read buffer: what a read brings is decrypted and handed on before the next. They share
the sessions that new connections resume, and the turns of handshakes: one step in a round of the loop, so that a burst
of new connections stalls no stream.
"""
