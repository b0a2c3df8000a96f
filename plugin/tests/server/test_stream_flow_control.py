"""Flow control of a client's connection: whoever writes waits while the transport's buffer is full."""

import asyncio

from opensearch_ml_stream.plugin.server.http1.flow_control import FlowControl
from tests.upstream.fake_transport import FakeTransport


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_flow_control_pauses_and_resumes_reading_once() -> None:
    transport = FakeTransport(asyncio.Protocol())
    flow = FlowControl(transport)
    assert (flow.read_paused, flow.write_paused) == (False, False)
    flow.resume_reading()
    assert transport.calls == []
    flow.pause_reading()
    flow.pause_reading()
    assert flow.read_paused and transport.calls == ["pause_reading"]
    flow.resume_reading()
    flow.resume_reading()
    assert not flow.read_paused and transport.calls == ["pause_reading", "resume_reading"]


async def test_flow_control_lets_all_who_wait_go_on_when_the_transport_accepts_bytes_again() -> None:
    flow = FlowControl(FakeTransport(asyncio.Protocol()))
    await flow.drain()
    flow.pause_writing()
    waiting = [asyncio.create_task(flow.drain()) for _ in range(2)]
    await settle()
    flow.pause_writing()  # said twice, the first waiters are not forgotten
    assert flow.write_paused and not any(task.done() for task in waiting)
    flow.resume_writing()
    assert not flow.write_paused
    await asyncio.gather(*waiting)
    await flow.drain()
    flow.resume_writing()
    flow.pause_writing()
    drained = asyncio.create_task(flow.drain())
    await settle()
    assert not drained.done()
    drained.cancel()


async def test_an_idle_flow_control_holds_no_event() -> None:
    flow = FlowControl(FakeTransport(asyncio.Protocol()))
    assert flow._writable is None
    flow.pause_writing()
    assert flow._writable is not None
    flow.resume_writing()
    assert flow._writable is None
