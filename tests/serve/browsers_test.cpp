// SPDX-License-Identifier: Apache-2.0
// What web pages of others can do: nothing, unless the server was told their origin.
#include "vitrail/serve/browsers_internal.h"

#include "tests/serve/serve_fixture.h"
#include "tests/support/errors.h"
#include "vitrail/serve/http_error.h"

namespace vitrail::testing {
namespace {

constexpr const char* kUnload = "/v2/repository/models/small/unload";

class ServeBrowsers : public ::testing::Test {
 protected:
  // The status of a request with these headers: "Host: …\r\n…".
  static HttpReply reply(const TestServer& server, const std::string& method, const std::string& target,
                         const std::string& headers) {
    const std::string body = method == "POST" ? png_of(noise_image(1)) : "";
    HttpConnection connection(server.port());
    connection.send(method + " " + target + " HTTP/1.1\r\n" + headers +
                    "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
    return connection.receive();
  }
  static std::string address(const TestServer& server) { return "127.0.0.1:" + std::to_string(server.port()); }
  static serve::ServeOptions options() {
    serve::ServeOptions options = serve_options();
    options.model_control = true;
    return options;
  }
};

TEST_F(ServeBrowsers, AHostIsANameOrAddressOfThisMachine) {
  const TestServer server;
  for (const char* host : {"localhost", "localhost:8080", "LocalHost:1", "127.0.0.1", "127.9.9.9:80", "[::1]:8080", ""})
    EXPECT_EQ(reply(server, "GET", "/v1/models", std::string("Host: ") + host + "\r\n").status, 200) << host;
  for (const char* host : {"evil.example", "evil.example:8080", "localhost.evil.example", "evil-localhost",
                           "127.0.0.1.x", "10.0.0.1", "[::2]", "[", "0.0.0.0", "localhost@x"}) {
    const std::string header = std::string("Host: ") + host + "\r\n";
    for (const char* target : {"/", "/openapi.json", "/metrics", "/v1/models", "/v2"})
      EXPECT_EQ(reply(server, "GET", target, header).status, 403) << host << target;
    EXPECT_EQ(reply(server, "POST", "/v1/classify", header).status, 403) << host;
    EXPECT_EQ(reply(server, "GET", "/livez", header).status, 200) << "a probe";
  }
}

TEST_F(ServeBrowsers, APostComesFromTheServersOwnPage) {
  const TestServer server;
  const std::string own = address(server), host = "Host: " + own + "\r\n";
  const auto status = [&](const std::string& origin) {
    return reply(server, "POST", "/v1/classify", host + "Origin: " + origin + "\r\n").status;
  };
  EXPECT_EQ(status("http://" + own), 200);
  for (const std::string& origin :
       {std::string("http://evil.example"), std::string("http://127.0.0.1"), std::string("http://localhost:3000"),
        std::string("null"), "ftp://" + own, own, "http://" + own + ".evil.example"})
    EXPECT_EQ(status(origin), 403) << origin;
  EXPECT_EQ(reply(server, "POST", "/v1/classify", host).status, 200) << "no browser";
}

TEST_F(ServeBrowsers, AChangeOfStateNeedsTheTokenOfThePage) {
  const TestServer server(options());
  const std::string host = "Host: " + address(server) + "\r\n",
                    own = host + "Origin: http://" + address(server) + "\r\n";
  const std::string page = server.get("/").body, before = "name=\"vitrail-token\" content=\"";
  const size_t at = page.find(before);
  ASSERT_NE(at, page.npos);
  const std::string token = page.substr(at + before.size(), 32);
  EXPECT_EQ(token.find_first_not_of("0123456789abcdef"), token.npos) << token;
  EXPECT_EQ(reply(server, "POST", kUnload, host + "Origin: http://evil.example\r\n").status, 403);
  EXPECT_EQ(reply(server, "POST", kUnload, own).status, 403);
  EXPECT_EQ(reply(server, "POST", kUnload, host + "Sec-Fetch-Site: same-origin\r\n").status, 403);
  EXPECT_EQ(reply(server, "POST", kUnload, own + "Vitrail-Token: " + std::string(32, '0') + "\r\n").status, 403);
  EXPECT_EQ(server.metric("vitrail_ready"), 1);
  EXPECT_EQ(reply(server, "POST", kUnload, own + "Vitrail-Token: " + token + "\r\n").status, 200);
  EXPECT_EQ(reply(server, "POST", kUnload, host).status, 200) << "no browser";
  const TestServer other(options());
  EXPECT_FALSE(contains(other.get("/").body, token)) << "each server has its own";
}

TEST_F(ServeBrowsers, AnOriginOfCorsMayUseTheServer) {
  serve::ServeOptions given = options();
  given.cors = {"https://example.org", "http://localhost:3000"};
  const TestServer server(given);
  const std::string host = "Host: " + address(server) + "\r\n", origin = host + "Origin: https://example.org\r\n";
  const auto allowed = [](const HttpReply& reply) {
    const auto found = reply.headers.find("access-control-allow-origin");
    return found == reply.headers.end() ? "" : found->second;
  };
  const HttpReply asked = reply(server, "OPTIONS", "/v1/classify",
                                origin +
                                    "Access-Control-Request-Method: POST\r\n"
                                    "Access-Control-Request-Headers: authorization\r\n");
  EXPECT_EQ(asked.status, 200);
  EXPECT_EQ(allowed(asked), "https://example.org");
  EXPECT_EQ(asked.headers.at("access-control-allow-headers"), "authorization");
  EXPECT_EQ(allowed(reply(server, "POST", "/v1/classify", origin)), "https://example.org");
  EXPECT_EQ(allowed(reply(server, "POST", "/v1/none", origin)), "https://example.org") << "errors can be read, too";
  EXPECT_EQ(allowed(reply(server, "GET", "/v1/models", host)), "");
  EXPECT_EQ(reply(server, "POST", kUnload, origin).status, 200);
  EXPECT_EQ(reply(server, "GET", "/v1/models", "Host: example.org\r\n").status, 200) << "behind a proxy";
  const HttpReply other = reply(server, "POST", "/v1/classify", host + "Origin: https://evil.example\r\n");
  EXPECT_EQ(other.status, 403);
  EXPECT_EQ(allowed(other), "");
  EXPECT_EQ(reply(server, "OPTIONS", "/v1/classify",
                  host + "Origin: https://evil.example\r\n"
                         "Access-Control-Request-Method: POST\r\n")
                .status,
            405);
}

TEST_F(ServeBrowsers, AKeyReplacesTheChecks) {
  serve::ServeOptions given = options();
  given.api_key = "k";
  const TestServer server(given);
  const std::string key = "Host: evil.example\r\nOrigin: http://evil.example\r\nAuthorization: Bearer k\r\n";
  EXPECT_EQ(reply(server, "POST", "/v1/classify", key).status, 200);
  EXPECT_EQ(reply(server, "POST", kUnload, key).status, 200);
}

TEST_F(ServeBrowsers, AnOriginOfCorsIsOneAsBrowsersSendIt) {
  for (const char* origin : {"", "*", "null", "example.org", "https://", "https://example.org/", "https://Example.org",
                             "https://a,https://b", "https://user@a", "ftp://a"}) {
    serve::ServeOptions given = options();
    given.cors = {origin};
    EXPECT_ERROR(error_of([&] { serve::Browsers{given}; }), "--cors", str("'", origin, "'"));
  }
}

}  // namespace
}  // namespace vitrail::testing
