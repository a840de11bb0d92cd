/* glib_echo PATH: an echo server with Debian's jsonrpc-glib, for comparison. Content-Length over a Unix socket. */
#include <gio/gio.h>
#include <gio/gunixsocketaddress.h>
#include <jsonrpc-glib.h>
#include <unistd.h>

static void on_echo(JsonrpcServer *server, JsonrpcClient *client, const char *method, GVariant *id, GVariant *params,
                    void *data) {
    g_autoptr(GVariant) first = g_variant_get_child_value(params, 0);

    (void) server, (void) method, (void) data;
    jsonrpc_client_reply_async(client, id, first, NULL, NULL, NULL);
}

static gboolean on_incoming(GSocketService *service, GSocketConnection *connection, GObject *source, void *server) {
    (void) service, (void) source;
    jsonrpc_server_accept_io_stream(server, G_IO_STREAM(connection));
    return TRUE;
}

int main(int argc, char **argv) {
    g_autoptr(GSocketAddress) address = NULL;
    g_autoptr(GError) error = NULL;
    GSocketService *service;
    JsonrpcServer *server;

    if (argc != 2) {
        g_printerr("usage: glib_echo PATH\n");
        return 1;
    }
    unlink(argv[1]);
    address = g_unix_socket_address_new(argv[1]);
    service = g_socket_service_new();
    server = jsonrpc_server_new();
    jsonrpc_server_add_handler(server, "echo", on_echo, NULL, NULL);
    g_socket_listener_set_backlog(G_SOCKET_LISTENER(service), 511);
    if (!g_socket_listener_add_address(G_SOCKET_LISTENER(service), address, G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_DEFAULT,
                                       NULL, NULL, &error)) {
        g_printerr("%s: %s\n", argv[1], error->message);
        return 1;
    }
    g_signal_connect(service, "incoming", G_CALLBACK(on_incoming), server);
    g_main_loop_run(g_main_loop_new(NULL, FALSE));
}
