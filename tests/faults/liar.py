"""A hub that says what a test wants, to everybody who connects: one line for each request, and what else it likes."""
import json
import socket
import threading


class Liar:
    """answer(method, params) is the result, or a text that is sent as the result as it stands; tell(method) what comes behind it."""

    def __init__(self, answer, tell=lambda method: (), path=None):
        self.answer, self.tell, self.asked = answer, tell, []
        if path:
            self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.listener.bind(path)
            self.listener.listen()
        else:
            self.listener = socket.create_server(("127.0.0.1", 0))
            self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        file = connection.makefile("rw")
        try:
            for line in file:
                message = json.loads(line)
                if "id" not in message:
                    continue
                method = message["method"]
                self.asked.append(method)
                result = self.answer(method, message.get("params") or {})
                raw = result if isinstance(result, str) else json.dumps(result)
                file.write('{"jsonrpc":"2.0","id":%s,"result":%s}\n' % (json.dumps(message["id"]), raw))
                for told in self.tell(method):
                    file.write(json.dumps({"jsonrpc": "2.0", **told}) + "\n")
                file.flush()
        except (OSError, ValueError):
            pass

    def done(self):
        self.listener.close()
