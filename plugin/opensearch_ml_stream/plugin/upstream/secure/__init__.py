"""TLS to providers on TCP transports: little memory a connection, resumed sessions, handshakes in turns."""
