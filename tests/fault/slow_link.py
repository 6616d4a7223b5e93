"""A slow link, by a program: every TCP connection of a host goes through it, and what is sent arrives later and no faster
than a given rate. The kernel here has no netem.

usage: slow_link.py PORT DELAY_MS BYTES_PER_S
Runs in the host's namespace, where a firewall redirects connections to PORT (see RULES); prints "ready".
"""

import asyncio
import contextlib
import socket
import struct
import sys

SO_ORIGINAL_DST = 80
MARK = 0x77  # of the connections that this program makes itself
CHUNK = 1 << 16
MAX_QUEUED = 256  # chunks on their way in one direction

# Connections that come in and that go out.
RULES = [["-t", "nat", "-A", "PREROUTING", "-i", "eth0", "-p", "tcp", "-j", "REDIRECT", "--to-ports"],
         ["-t", "nat", "-A", "OUTPUT", "-o", "eth0", "-p", "tcp", "-m", "mark", "!", "--mark", str(MARK), "-j", "REDIRECT",
          "--to-ports"]]


def original_destination(writer):
    raw = writer.get_extra_info("socket").getsockopt(socket.SOL_IP, SO_ORIGINAL_DST, 16)
    port, address = struct.unpack("!2xH4s8x", raw)
    return socket.inet_ntoa(address), port


async def dial(address, port):
    end = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    end.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, MARK)
    end.setblocking(False)
    await asyncio.get_running_loop().sock_connect(end, (address, port))
    return await asyncio.open_connection(sock=end)


async def carry(reader, writer, delay_s, rate):
    """One direction, until it is closed."""
    loop, queue = asyncio.get_running_loop(), asyncio.Queue(MAX_QUEUED)

    async def take():
        free_at = loop.time()
        with contextlib.suppress(OSError):
            while data := await reader.read(CHUNK):
                free_at = max(free_at, loop.time()) + len(data) / rate
                await queue.put((free_at + delay_s, data))
        await queue.put((loop.time() + delay_s, b""))

    taking = asyncio.create_task(take())
    with contextlib.suppress(OSError):
        while True:
            when, data = await queue.get()
            await asyncio.sleep(max(0.0, when - loop.time()))
            if not data:
                break
            writer.write(data)
            await writer.drain()
        writer.write_eof()
    taking.cancel()


async def serve(reader, writer, delay_s, rate):
    try:
        there_reader, there_writer = await dial(*original_destination(writer))
    except OSError:
        writer.transport.abort()  # refused there, so reset here
        return
    try:
        await asyncio.gather(carry(reader, there_writer, delay_s, rate), carry(there_reader, writer, delay_s, rate))
    finally:
        for end in (writer, there_writer):
            end.close()


async def main():
    port, delay_s, rate = int(sys.argv[1]), float(sys.argv[2]) / 1000, float(sys.argv[3])
    server = await asyncio.start_server(lambda r, w: serve(r, w, delay_s, rate), "0.0.0.0", port)
    print("ready", flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
