// jsonrpccpp_echo PORT: an echo server with Debian's libjson-rpc-cpp, for comparison. HTTP, its only transport that
// keeps a connection: the Unix socket one closes it after each answer.
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

#include <jsonrpccpp/server.h>
#include <jsonrpccpp/server/connectors/httpserver.h>

// The server has one core. With the default of 50 threads it needs more CPU there, and one run in four or so ended with a
// connection reset; with one thread none did.
static const int THREADS = 1;

class EchoServer : public jsonrpc::AbstractServer<EchoServer> {
  public:
    explicit EchoServer(jsonrpc::AbstractServerConnector &connector) : jsonrpc::AbstractServer<EchoServer>(connector) {
        bindAndAddMethod(jsonrpc::Procedure("echo", jsonrpc::PARAMS_BY_POSITION, jsonrpc::JSON_STRING, "text",
                                            jsonrpc::JSON_STRING, nullptr),
                         &EchoServer::echo);
    }

  private:
    void echo(const Json::Value &params, Json::Value &result) {
        result = params[0];
    }
};

int main(int argc, char **argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: jsonrpccpp_echo PORT\n");
        return 1;
    }
    jsonrpc::HttpServer connector(std::atoi(argv[1]), "", "", THREADS);
    EchoServer server(connector);
    if (!server.StartListening()) {
        std::fprintf(stderr, "cannot listen on port %s\n", argv[1]);
        return 1;
    }
    for (;;)
        pause();
}
