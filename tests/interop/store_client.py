"""PyTorch's own TCPStore client against the server at 127.0.0.1:PORT: every call this PyTorch has, step by step."""

import sys
import threading
from datetime import timedelta

import torch
import torch.distributed as dist

PORT = int(sys.argv[1])
PATIENCE = timedelta(seconds=20)


def connect(world_size=None):
    """With a world size the store counts itself in, as every worker's does."""
    counted = world_size is not None
    return dist.TCPStore("127.0.0.1", PORT, world_size, False, PATIENCE, wait_for_workers=counted)


def same(got, expected):
    assert got == expected, f"got {got!r}, expected {expected!r}"


def raises(pattern, call):
    try:
        call()
    except Exception as error:
        assert pattern.lower() in str(error).lower(), f"{error!r} does not say {pattern!r}"
        return
    raise AssertionError(f"nothing was raised, expected {pattern!r}")


def basics(store):
    store.set("k", "v")
    same(store.get("k"), b"v")
    store.set("k", "")
    same(store.get("k"), b"")
    store.set("big", "x" * (4 << 20))
    same(len(store.get("big")), 4 << 20)
    same(store.add("n", 5), 5)
    same(store.add("n", -7), -2)
    same(store.get("n"), b"-2")
    same(store.compare_set("c", "q", "x"), b"q")
    same(store.compare_set("c", "", "x"), b"x")
    same(store.compare_set("c", "q", "y"), b"x")
    same(store.compare_set("c", "x", "y"), b"y")
    same(store.delete_key("c"), True)
    same(store.delete_key("c"), False)


def waits(store):
    store.wait(["k", "n"], PATIENCE)
    raises("timeout", lambda: store.wait(["nope"], timedelta(milliseconds=200)))
    store.set_timeout(timedelta(milliseconds=200))
    raises("timeout", lambda: store.get("nope"))
    store.set_timeout(PATIENCE)
    keys = store.num_keys()
    late = connect()
    late.set("nope", "late")
    late.get("nope")  # a set has no reply: what follows it on its own connection says that it arrived
    same(store.num_keys(), keys + 1)
    other = connect()
    thread = threading.Thread(target=lambda: other.set("later", "there"))
    thread.start()
    same(store.get("later"), b"there")
    thread.join()


def prefixes(store):
    nested = dist.PrefixStore("0", dist.PrefixStore("default_pg", store))
    nested.set("1", "address")
    same(store.get("default_pg/0/1"), b"address")
    same(dist.PrefixStore("default_pg", store).get("0/1"), b"address")


def newer_calls(store):
    """Whatever of this the installed PyTorch has."""
    done = []
    if hasattr(store, "append"):
        store.append("app", "ab")
        store.append("app", "cd")
        same(store.get("app"), b"abcd")
        done.append("append")
    if hasattr(store, "multi_set"):
        store.multi_set(["m1", "m2"], ["1", "22"])
        same(store.multi_get(["m1", "m2"]), [b"1", b"22"])
        done.append("multi_set, multi_get")
    if hasattr(store, "check"):
        same((store.check(["k"]), store.check(["nowhere"])), (True, False))
        done.append("check")
    if hasattr(store, "queue_push"):
        store.queue_push("q", "1")
        store.queue_push("q", "2")
        same(store.queue_len("q"), 2)
        same((store.queue_pop("q"), store.queue_pop("q")), (b"1", b"2"))
        same(store.queue_len("q"), 0)
        done.append("queues")
    if hasattr(store, "list_keys"):
        assert "k" in store.list_keys()
        done.append("list_keys")
    if hasattr(store, "barrier"):
        other = connect()
        thread = threading.Thread(target=lambda: other.barrier("bar", 2, PATIENCE))
        thread.start()
        store.barrier("bar", 2, PATIENCE)
        thread.join()
        done.append("barrier")
    return done


def main():
    store = connect(world_size=1)
    same(store.num_keys(), 1)
    basics(store)
    waits(store)
    prefixes(store)
    done = newer_calls(store)
    print(f"store calls pass with PyTorch {torch.__version__}; newer calls: {', '.join(done) or 'none'}")


main()
