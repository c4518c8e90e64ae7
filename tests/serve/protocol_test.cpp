// SPDX-License-Identifier: Apache-2.0
// HTTP: limits, time limits, malformed requests, keys, health, and the end of a server.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <fstream>
#include <future>

#include "tests/serve/serve_fixture.h"
#include "vitrail/base/read_file.h"

namespace vitrail::testing {
namespace {

// The status of the response to these bytes, after which the connection must be closed.
int status_and_close(uint16_t port, const std::string& bytes) {
  HttpConnection connection(port);
  connection.send(bytes);
  const int status = connection.receive().status;
  EXPECT_TRUE(connection.closed_within(10)) << bytes.substr(0, 200);
  return status;
}

TEST(ServeProtocol, AmbiguousRequestsAreRefused) {
  const TestServer server;
  const std::string head = "POST /v1/classify HTTP/1.1\r\nHost: localhost\r\n",
                    chunked = "Transfer-Encoding: chunked\r\n";
  for (const std::string& framing : {"Content-Length: 5\r\n" + chunked + "\r\n0\r\n\r\n",
                                     chunked + "Content-Length: 5\r\n\r\n0\r\n\r\n",
                                     std::string("Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!"),
                                     std::string("Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello"),
                                     std::string("Content-Length: 5, 5\r\n\r\nhello"),
                                     std::string("Content-Length: +5\r\n\r\nhello"),
                                     std::string("Content-Length: -5\r\n\r\nhello"),
                                     std::string("Content-Length: 0x5\r\n\r\nhello"),
                                     std::string("Content-Length: 18446744073709551616\r\n\r\nhello"),
                                     std::string("Content-Length: \r\n\r\n"),
                                     std::string("Content-Length : 5\r\n\r\nhello"),
                                     std::string("Transfer-Encoding: gzip\r\n\r\nhello"),
                                     std::string("Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n"),
                                     std::string("Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
                                     std::string("Transfer-Encoding: identity\r\n\r\nhello"),
                                     std::string("Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n"),
                                     std::string("X: a\r\n b: c\r\nContent-Length: 0\r\n\r\n"),
                                     std::string("X: a\nContent-Length: 0\r\n\r\n"),
                                     chunked + "\r\n-2\r\nhello\r\n0\r\n\r\n",
                                     chunked + "\r\nffffffffffffffff1\r\nhello\r\n0\r\n\r\n",
                                     chunked + "\r\n5\nhello\r\n0\r\n\r\n",
                                     chunked + "\r\nxyz\r\n"}) {
    EXPECT_EQ(status_and_close(server.port(), head + framing), 400) << framing;
  }
  for (const char* line : {"GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "G\x01T / HTTP/1.1\r\n\r\n",
                           "\x16\x03\x01\x02\x00\r\n\r\n", "GET /\x80 HTTP/1.1\r\n\r\n extra"}) {
    const int status = status_and_close(server.port(), line);
    EXPECT_TRUE(status == 400 || status == 404) << line << status;
  }
  EXPECT_EQ(server.get("/healthz").status, 200) << "the server survives";
}

TEST(ServeProtocol, LimitsHoldAtTheirEdges) {
  serve::ServeOptions options = serve_options();
  options.limits.body_bytes = 10'000;
  options.limits.headers = 10;
  options.limits.header_bytes = 2'000;
  options.limits.chunks = 8;
  options.limits.images = 2;
  options.limits.json_depth = 4;
  options.limits.pixels = 40 * 36;
  const TestServer server(options);
  const std::string image = png_of(noise_image(1));
  ASSERT_LT(image.size(), 9'000u);
  EXPECT_EQ(server.post("/v1/classify", image + std::string(10'000 - image.size(), '\0')).status, 200) << "body";
  EXPECT_EQ(server.post("/v1/classify", image + std::string(10'001 - image.size(), '\0')).status, 413) << "body";
  std::string headers;
  for (int i = 0; i < 8; ++i) headers += "X-" + std::to_string(i) + ": a\r\n";  // beside Host and Content-Length
  EXPECT_EQ(server.post("/v1/classify", image, headers).status, 200) << "headers";
  EXPECT_EQ(server.post("/v1/classify", image, headers + "X-8: a\r\n").status, 431) << "headers";
  EXPECT_EQ(server.post("/v1/classify", image, "X: " + std::string(1'800, 'a') + "\r\n").status, 200) << "header bytes";
  EXPECT_EQ(server.post("/v1/classify", image, "X: " + std::string(2'001, 'a') + "\r\n").status, 431) << "header bytes";
  EXPECT_EQ(server.post("/v1/classify", Form({image, image}).body, Form({}).headers).status, 200) << "images";
  EXPECT_EQ(server.post("/v1/classify", Form({"a", "b", "c"}).body, Form({}).headers).status, 413) << "images";
  EXPECT_EQ(server.post("/v1/classify", png_of(noise_image(1, 40, 37))).status, 422) << "pixels";
  EXPECT_EQ(server.post("/v1/classify", "[[[[1]]]]", kJson).status, 400);
  EXPECT_TRUE(contains(server.post("/v1/classify", "[[[[[1]]]]]", kJson).body, "4 levels")) << "depth";
  EXPECT_EQ(server.post("/v1/classify", std::string(9'000, '['), kJson).status, 400) << "depth";
}

TEST(ServeProtocol, LimitsHoldForChunkedBodies) {
  serve::ServeOptions options = serve_options();
  options.limits.body_bytes = 10'000;
  options.limits.chunks = 8;
  const TestServer server(options);
  const std::string head = "POST /v1/classify HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::string image = png_of(noise_image(1));
  const auto chunked = [&](const std::string& body, size_t pieces) {
    std::string text = head;
    const size_t size = (body.size() + pieces - 1) / pieces;
    for (size_t at = 0; at < body.size(); at += size) {
      const std::string piece = body.substr(at, size);
      char length[32];
      std::snprintf(length, sizeof length, "%zx\r\n", piece.size());
      text += length + piece + "\r\n";
    }
    HttpConnection connection(server.port());
    connection.send(text + "0\r\n\r\n");
    return connection.receive().status;
  };
  EXPECT_EQ(chunked(image, 7), 200) << "the last chunk counts";
  EXPECT_EQ(chunked(image, 8), 413);
  EXPECT_EQ(chunked(image + std::string(10'000 - image.size(), '\0'), 4), 200);
  EXPECT_EQ(chunked(image + std::string(10'001 - image.size(), '\0'), 4), 413);
}

TEST(ServeProtocol, PipelinedRequestsHaveResponsesInOrder) {
  const TestServer server;
  HttpConnection connection(server.port());
  const std::string png = png_of(noise_image(1));
  connection.send(http_request("POST", "/v1/classify", png) + http_request("GET", "/healthz") +
                  http_request("GET", "/none") + http_request("HEAD", "/healthz") + http_request("GET", "/livez"));
  EXPECT_TRUE(contains(connection.receive().body, "predictions"));
  EXPECT_TRUE(contains(connection.receive().body, "ready"));
  EXPECT_EQ(connection.receive().status, 404);
  const HttpReply head = connection.receive(false);
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.headers.at("content-length"), "15");
  EXPECT_TRUE(contains(connection.receive().body, "live"));
}

TEST(ServeProtocol, ClientsOfHttp10KeepTheirConnectionIfTheyAsk) {
  const TestServer server;
  HttpConnection connection(server.port());
  for (int i = 0; i < 2; ++i) {
    connection.send("GET /livez HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n");
    const HttpReply reply = connection.receive();
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.headers.at("connection"), "keep-alive");
  }
  EXPECT_EQ(status_and_close(server.port(), "GET /livez HTTP/1.0\r\n\r\n"), 200);
}

TEST(ServeProtocol, ARequestHasOneHost) {
  const TestServer server;
  const auto refusal = [&](const std::string& head) {
    HttpConnection connection(server.port());
    connection.send(head + "\r\n");
    const HttpReply reply = connection.receive();
    EXPECT_TRUE(connection.closed_within(10)) << head;
    return str(reply.status, " ", json::parse(reply.body).value("error", ""));
  };
  const std::string fault = "400 malformed HTTP: expected one header Host, got ";
  EXPECT_EQ(refusal("GET /livez HTTP/1.1\r\n"), fault + "0");
  EXPECT_EQ(refusal("GET /livez HTTP/1.1\r\nHost: localhost\r\nhost: a\r\n"), fault + "2");
  EXPECT_EQ(refusal("GET http://a/livez HTTP/1.1\r\n"), fault + "0") << "the target does not replace it";
  EXPECT_EQ(refusal("GET /livez HTTP/1.0\r\nHost: localhost\r\nHost: b\r\n"), fault + "2");
  EXPECT_EQ(refusal("GET /livez HTTP/1.0\r\n"), "200 ") << "older than the header";
  EXPECT_EQ(refusal("GET /livez HTTP/1.0\r\nHost: localhost\r\n"), "200 ");
  EXPECT_EQ(refusal("GET /livez HTTP/1.1\r\nHost:\r\nConnection: close\r\n"), "200 ");
}

TEST(ServeProtocol, EmptyLinesBeforeARequestAreSkipped) {
  const TestServer server;
  HttpConnection connection(server.port());
  const std::string request = http_request("GET", "/livez");
  for (const std::string& before : {std::string("\r\n"), std::string("\r\n\r\n")}) {
    connection.send(before + request);
    EXPECT_EQ(connection.receive().status, 200);
  }
  for (const char c : "\r\n" + request) {
    connection.send(std::string_view(&c, 1));
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_EQ(connection.receive().status, 200);
}

TEST(ServeProtocol, OpenAisClientsReadModelsAndUnknownRoutes) {
  const TestServer server;
  const json list = json::parse(server.get("/v1/models").body)["data"];
  EXPECT_EQ(json::parse(server.get("/v1/models/clip").body), list[1]);
  for (const char* target : {"/v1/models/none", "/v1/chat/completions", "/v1/models/a/b"}) {
    const HttpReply reply = server.get(target);
    EXPECT_EQ(reply.status, 404);
    EXPECT_EQ(json::parse(reply.body)["error"]["code"], 404) << reply.body;
  }
  for (const char* target : {"/none", "/v2/models/none"})
    EXPECT_TRUE(json::parse(server.get(target).body)["error"].is_string()) << target;
}

TEST(ServeProtocol, TargetsMayBeAbsolute) {
  const TestServer server;
  EXPECT_EQ(server.get("http://elsewhere:1/livez").body, server.get("/livez").body);
  EXPECT_EQ(server.get("HTTP://localhost").status, 200) << "the page";
  EXPECT_EQ(server.get("http://localhost/none").status, 404);
  EXPECT_EQ(server.get("http:///livez").status, 400);
  const std::string png = png_of(noise_image(1));
  EXPECT_EQ(server.post("http://localhost/v1/classify?top=2", png).body, server.post("/v1/classify?top=2", png).body);
}

TEST(ServeProtocol, MethodsAndRoutesAreNamed) {
  const TestServer server;
  const HttpReply reply = server.get("/v1/classify");
  EXPECT_EQ(reply.status, 405);
  EXPECT_EQ(reply.headers.at("allow"), "POST");
  EXPECT_EQ(server.get("/etc/passwd").status, 404);
  EXPECT_EQ(server.get("/%2e%2e/%2e%2e/etc/passwd").status, 404);
  EXPECT_EQ(server.get("/%zz").status, 400);
  EXPECT_EQ(server.get("/v1/models?a=%00").status, 400);
  EXPECT_EQ(http(server.port(), "BREW", "/v1/classify").status, 405);
}

TEST(ServeProtocol, ContinuesWhenAsked) {
  const TestServer server;
  const std::string png = png_of(noise_image(1));
  HttpConnection connection(server.port());
  connection.send("POST /v1/classify HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: " +
                  std::to_string(png.size()) + "\r\n\r\n");
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  connection.send(png);
  EXPECT_EQ(connection.receive().status, 200);
}

TEST(ServeProtocol, SlowClientsAreCutOffAndOthersServed) {
  serve::ServeOptions options = serve_options();
  options.limits.header_seconds = 0.3;
  options.limits.idle_seconds = 0.5;
  options.limits.body_grace_seconds = 0.3;
  const TestServer server(options);
  HttpConnection header(server.port()), body(server.port()), idle(server.port());
  header.send("POST /v1/classify HT");
  body.send("POST /v1/classify HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\nabc");
  EXPECT_EQ(server.post("/v1/classify", png_of(noise_image(1))).status, 200);
  EXPECT_EQ(header.receive().status, 408);
  EXPECT_EQ(body.receive().status, 408);
  EXPECT_EQ(idle.receive().status, 0) << "closed without a response";
}

// More responses than the buffers of the two sockets hold, so that the server cannot write them.
TEST(ServeProtocol, AClientThatReadsNoResponsesIsCutOffAndOthersServed) {
  serve::ServeOptions options = serve_options();
  options.limits.request_seconds = 2;
  options.limits.body_bytes_per_second = 1e9;
  options.limits.idle_seconds = 1000;
  const TestServer server(options);
  const size_t size = server.get("/openapi.json").body.size();
  std::string requests;
  for (size_t sent = 0; sent < (size_t{64} << 20); sent += size) requests += http_request("GET", "/openapi.json");
  HttpConnection client(server.port());
  client.send(requests);
  EXPECT_EQ(server.post("/v1/classify", png_of(noise_image(1))).status, 200);
  wait_until([&] { return server.metric("vitrail_connections") == 1; });
}

TEST(ServeProtocol, AConnectionsFirstRequestHasTheTimeOfAHeader) {
  serve::ServeOptions options = serve_options();
  options.limits.header_seconds = 0.3;
  const TestServer server(options);
  HttpConnection silent(server.port()), later(server.port());
  later.send(http_request("GET", "/livez"));
  EXPECT_EQ(later.receive().status, 200);
  EXPECT_TRUE(silent.closed_within(10));
  EXPECT_FALSE(later.closed_within(1)) << "between requests there is more time";
}

TEST(ServeProtocol, TheLongestIdleConnectionYieldsToANewOne) {
  serve::ServeOptions options = serve_options();
  options.limits.connections = 3;
  const TestServer server(options);
  std::vector<std::unique_ptr<HttpConnection>> open;
  for (int i = 0; i < 3; ++i) {
    open.push_back(std::make_unique<HttpConnection>(server.port()));
    open.back()->send(i == 0 ? "GET /livez HT" : http_request("GET", "/livez"));
    EXPECT_EQ(i == 0 ? 200 : open.back()->receive().status, 200);
  }
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(server.get("/v1/models").status, 200);
    EXPECT_TRUE(open.front()->closed_within(10)) << i;
    EXPECT_FALSE(open.back()->closed_within(0.1)) << i;
    open.erase(open.begin());
    open.push_back(std::make_unique<HttpConnection>(server.port()));
    open.back()->send(http_request("GET", "/livez"));
    EXPECT_EQ(open.back()->receive().status, 200);
  }
}

TEST(ServeProtocol, HealthHasConnectionsOfItsOwn) {
  serve::ServeOptions options = serve_options();
  options.limits.connections = 2;
  options.limits.body_grace_seconds = 60;
  const TestServer server(options);
  std::vector<std::unique_ptr<HttpConnection>> busy;
  for (int i = 0; i < 2; ++i) {
    busy.push_back(std::make_unique<HttpConnection>(server.port()));
    busy.back()->send("POST /v1/classify HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n");
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // the headers arrive
  EXPECT_EQ(server.get("/v1/models").status, 503);
  for (const char* target : {"/livez", "/healthz", "/v2/health/live"}) EXPECT_EQ(server.get(target).status, 200);
  EXPECT_EQ(server.post("/v1/classify", png_of(noise_image(1))).status, 503);
  EXPECT_EQ(server.get("/").status, 503);
  busy.pop_back();
  wait_until([&] { return server.get("/v1/models").status == 200; });
}

TEST(ServeProtocol, AClientThatSendsNoMoreGetsItsResponse) {
  serve::ServeOptions options = serve_options();
  options.delay_ms = 300;
  const TestServer on_tcp(options);
  options.unix_path = (scratch_folder() / "socket").string();
  const TestServer on_unix(options);
  const std::string post = http_request("POST", "/v1/classify", png_of(noise_image(1)));
  const std::string want = on_tcp.post("/v1/classify", png_of(noise_image(1))).body;
  for (const bool is_unix : {false, true}) {
    const auto open = [&] {
      return is_unix ? std::make_unique<HttpConnection>(options.unix_path)
                     : std::make_unique<HttpConnection>(on_tcp.port());
    };
    for (int i = 0; i < 10; ++i) {
      const auto connection = open();
      connection->send(http_request("GET", "/livez"));
      connection->end_sending();
      const HttpReply reply = connection->receive();
      EXPECT_EQ(reply.status, 200);
      EXPECT_EQ(reply.body, "{\"live\":true}\n");
    }
    const auto connection = open();
    connection->send(post);
    connection->end_sending();
    EXPECT_EQ(connection->receive().body, want);
  }
}

TEST(ServeProtocol, AGetTakesNoBody) {
  serve::ServeOptions options = serve_options();
  options.api_key = "k";
  const TestServer server(options);
  const std::string key = "Authorization: Bearer k\r\n", body(1000, 'a');
  for (const char* target : {"/livez", "/healthz", "/", "/openapi.json", "/v1/models", "/metrics"}) {
    EXPECT_EQ(http(server.port(), "GET", target, body, key + "Content-Encoding: gzip\r\n").status, 413) << target;
    EXPECT_EQ(http(server.port(), "GET", target, "", key + "Content-Length: 0\r\n").status, 200) << target;
  }
  HttpConnection chunked(server.port());
  chunked.send("GET /livez HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
  EXPECT_EQ(chunked.receive().status, 413);
}

TEST(ServeProtocol, AKeyThatNoRequestCanCarryIsRefused) {
  serve::ServeOptions options = serve_options();
  for (const std::string& key :
       {std::string("a\nb"), std::string("a\tb"), std::string("a "), std::string("a\x7f"), std::string("a\0b", 3)}) {
    options.api_key = key;
    EXPECT_TRUE(contains(error_of([&] { serve::Server{options}; }), "API key")) << key;
  }
  options.api_key = std::string(16'384, 'k');
  EXPECT_TRUE(contains(error_of([&] { serve::Server{options}; }), "at most 16384 bytes"));
  options.api_key = "a b";
  const TestServer server(options);
  EXPECT_EQ(http(server.port(), "GET", "/v1/models", "", "Authorization: Bearer a b\r\n").status, 200);
}

TEST(ServeProtocol, AKeyIsRequired) {
  serve::ServeOptions options = serve_options();
  options.api_key = "secret";
  const TestServer server(options);
  const std::string png = png_of(noise_image(1));
  const HttpReply reply = server.post("/v1/classify", png);
  EXPECT_EQ(reply.status, 401);
  EXPECT_EQ(reply.headers.at("www-authenticate"), "Bearer");
  for (const char* key : {"Bearer wrong!", "Bearer secre", "Bearer secrets", "Bearer ", "Bearer", "secret",
                          "Basic secret", "bearer Secret", "Bearersecret", "Bearer_secret"})
    EXPECT_EQ(server.post("/v1/classify", png, std::string("Authorization: ") + key + "\r\n").status, 401) << key;
  for (const char* scheme : {"Bearer", "bearer", "BEARER"}) {
    const std::string header = std::string("Authorization: ") + scheme + " secret\r\n";
    EXPECT_EQ(server.post("/v1/classify", png, header).status, 200) << scheme;
  }
  EXPECT_EQ(server.get("/healthz").status, 200) << "health needs no key";
  EXPECT_EQ(server.get("/metrics").status, 401);
}

TEST(ServeProtocol, AnAddressThatOthersReachNeedsAKey) {
  serve::ServeOptions options = serve_options();
  options.host = "0.0.0.0";
  EXPECT_TRUE(contains(error_of([&] { serve::Server{options}; }), "API key"));
  options.host = "example.org";
  EXPECT_TRUE(contains(error_of([&] { serve::Server{options}; }), "IPv4 or IPv6"));
  options.host = "127.0.0.1";
  const serve::Server first(options);
  options.port = first.port();
  EXPECT_TRUE(contains(error_of([&] { serve::Server{options}; }), "in use"));
}

TEST(ServeProtocol, AUnixSocketIsReplacedAndRemoved) {
  serve::ServeOptions options = serve_options();
  options.unix_path = (scratch_folder() / "socket").string();
  {
    TestServer server(options);
    HttpConnection connection(options.unix_path);
    connection.send(http_request("POST", "/v1/classify", png_of(noise_image(1))));
    EXPECT_EQ(connection.receive().status, 200);
    EXPECT_TRUE(contains(error_of([&] { serve::Server{options}; }), "in use")) << "a server listens on it";
  }
  EXPECT_FALSE(std::filesystem::exists(options.unix_path));
}

TEST(ServeProtocol, OnlyASocketThatNobodyListensOnIsReplaced) {
  const std::filesystem::path folder = scratch_folder();
  serve::ServeOptions options = serve_options();
  options.unix_path = (folder / "file").string();
  std::ofstream(options.unix_path) << "precious";
  EXPECT_TRUE(contains(error_of([&] { serve::Server{options}; }), options.unix_path));
  EXPECT_EQ(read_text_file(options.unix_path), "precious");
  options.unix_path = (folder / "link").string();
  std::filesystem::create_symlink(folder / "file", folder / "link");
  EXPECT_THROW(serve::Server{options}, Error);
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(read_text_file(folder / "file"), "precious");
  // A server that was killed leaves its socket behind.
  const std::string stale = (folder / "stale").string();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  stale.copy(address.sun_path, sizeof address.sun_path - 1);
  const int left = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(::bind(left, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ::close(left);
  options.unix_path = stale;
  const TestServer server(options);
  HttpConnection connection(stale);
  connection.send(http_request("GET", "/healthz"));
  EXPECT_EQ(connection.receive().status, 200);
}

TEST(ServeProtocol, ReadyAfterTheModelsAreLoaded) {
  serve::Server server(serve_options());
  EXPECT_EQ(http(server.port(), "GET", "/healthz").status, 503);
  EXPECT_EQ(http(server.port(), "GET", "/livez").status, 200);
  EXPECT_EQ(http(server.port(), "POST", "/v1/classify", png_of(noise_image(1))).status, 503);
  server.load();
  EXPECT_EQ(http(server.port(), "GET", "/healthz").status, 200);
}

TEST(ServeProtocol, DrainLosesNoAcceptedRequest) {
  serve::ServeOptions options = serve_options();
  options.delay_ms = 2000;  // requests are in flight when the drain begins
  TestServer server(options);
  std::vector<std::future<int>> statuses;
  for (uint64_t i = 0; i < 5; ++i) {
    statuses.push_back(std::async(std::launch::async,
                                  [&server, i] { return server.post("/v1/classify", png_of(noise_image(i))).status; }));
  }
  HttpConnection idle(server.port());
  wait_until([&] { return server.metric("vitrail_waiting_images") == 5; });
  EXPECT_TRUE(server.drain());
  for (auto& status : statuses) EXPECT_EQ(status.get(), 200);
  EXPECT_EQ(idle.receive().status, 0);
  EXPECT_FALSE(server.ready());
  EXPECT_ANY_THROW(HttpConnection{server.port()}) << "no longer listens";
}

TEST(ServeProtocol, ErrorsCarryNoPaths) {
  const TestServer server;
  for (const auto& [target, body] : std::vector<std::pair<std::string, std::string>>{
           {"/v1/classify", "x"}, {"/v1/classify?model=..", "x"}, {"/v1/none", ""}, {"/v1/zeroshot?labels=a", "x"}}) {
    const std::string text = server.post(target, body, "Content-Type: image/png\r\n").body;
    EXPECT_FALSE(contains(text, fixture("models").parent_path().string())) << text;
  }
}

}  // namespace
}  // namespace vitrail::testing
