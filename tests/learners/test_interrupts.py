import signal
import threading

import pytest

from ranktron.learners.schedule import Interrupts


def interrupted():
    """Whether Ctrl-C ends what runs."""
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        return True
    return False


def test_the_first_interrupt_asks_and_the_second_ends():
    before = signal.getsignal(signal.SIGINT)
    with Interrupts() as interrupts:
        assert not interrupts.requested
        assert not interrupted()
        assert interrupts.requested
        assert interrupted()
    assert signal.getsignal(signal.SIGINT) == before
    with pytest.raises(ZeroDivisionError), Interrupts():
        1 / 0
    assert signal.getsignal(signal.SIGINT) == before


def test_only_the_main_thread_listens():
    def listen():
        with Interrupts():
            heard.append(signal.getsignal(signal.SIGINT))

    heard = []
    thread = threading.Thread(target=listen)
    thread.start()
    thread.join()
    assert heard == [signal.getsignal(signal.SIGINT)]
