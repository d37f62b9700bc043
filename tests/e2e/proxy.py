"""A connection to a server that can be cut and measured."""
import contextlib
import socket
import threading


class Proxy:
    """Passes connections on to a server and cuts them when told to; counts them and their bytes."""

    def __init__(self, port):
        self.target = ("127.0.0.1", port)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.lock = threading.Lock()
        self.sockets = []  # of connections that were not cut
        self.all_sockets = []
        self.threads = []
        self.carried = []  # by each connection, bytes both ways
        self.bytes = 0  # both ways
        self.silent = set()  # sockets whose bytes are dropped without notice
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
                onward = socket.create_connection(self.target)
            except OSError:
                return
            with self.lock:
                self.carried.append(0)
                number = len(self.carried) - 1
                self.sockets += [client, onward]
                self.all_sockets += [client, onward]
                for ends in ((client, onward), (onward, client)):
                    thread = threading.Thread(target=self.carry, args=(*ends, number))
                    thread.start()
                    self.threads.append(thread)

    @property
    def connections(self):
        """Those of sessions. A link whose first attempt fails asks why, by one that carries
        little."""
        with self.lock:
            return sum(count > 1 << 10 for count in self.carried)

    def carry(self, source, sink, number):
        try:
            while data := source.recv(1 << 18):
                if source in self.silent:
                    continue
                sink.sendall(data)
                with self.lock:
                    self.bytes += len(data)
                    self.carried[number] += len(data)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self):
        with self.lock:
            doomed, self.sockets = self.sockets, []
        for end in doomed:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        return len(doomed)

    def cut_one(self, number):
        """The connection that came as this one, from 0."""
        with self.lock:
            doomed = self.all_sockets[2 * number:2 * number + 2]
        with contextlib.suppress(OSError):  # one end takes the other along
            for end in doomed:
                end.shutdown(socket.SHUT_RDWR)

    def fall_silent(self):
        """What is open carries nothing from here on, and stays open; what comes later works."""
        with self.lock:
            self.silent |= set(self.sockets)

    @contextlib.contextmanager
    def cut_again_and_again(self):
        """While it is entered, cuts what is open twice a second; gives the list of how many ends
        each time met."""
        done, cuts = threading.Event(), []

        def keep_cutting():
            while not done.wait(0.5):
                cuts.append(self.cut())

        cutter = threading.Thread(target=keep_cutting)
        cutter.start()
        try:
            yield cuts
        finally:
            done.set()
            cutter.join()

    def close(self):
        self.listener.close()
        self.cut()
        for thread in self.threads:
            thread.join()
        for end in self.all_sockets:
            end.close()
