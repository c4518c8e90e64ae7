// SPDX-License-Identifier: Apache-2.0
#pragma once
// The interface between the server and its module for HTTP, which alone includes Boost.Beast.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vitrail/serve/limits.h"

namespace vitrail::serve {

using Headers = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method, target;  // target: "/v1/classify?top=3"
  Headers headers;             // names in lower case
  std::string body;            // empty while only the header has arrived
  std::string client = {};     // its address, "127.0.0.1:50000"; empty for a Unix socket

  // The value of a header, by its name in lower case; empty without it.
  std::string_view header(std::string_view name) const {
    for (const auto& [key, value] : headers) {
      if (key == name) return value;
    }
    return {};
  }
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body = {};
  Headers headers = {};
};

// A request that waits for its response.
class HttpExchange {
 public:
  virtual ~HttpExchange() = default;
  // Sends the response; calls after the first have no effect.  Thread-safe, and returns at once.
  virtual void respond(HttpResponse response) = 0;
  // The connection, by a number that no other of this server has.
  virtual uint64_t client() const = 0;
  // Whether nobody waits for the response any more: the client closed the connection, or the time limit passed.
  virtual bool departed() const = 0;
  // Whether the time limit passed: then the client has a response, of status 504.
  virtual bool timed_out() const = 0;
};

// What is in flight when a request begins.
enum class HttpLoad {
  kUsual,
  kOverloaded,  // more requests or bytes than the limits allow
  kFull,        // more connections, each with a request: this one is for health alone
};

// What the module calls, on its own thread; no function may block or throw.
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  // A response that refuses the request before its body is read; none admits it.
  virtual std::optional<HttpResponse> refuse(const HttpRequest& head, HttpLoad load) = 0;
  virtual void handle(HttpRequest request, std::shared_ptr<HttpExchange> exchange) = 0;
  // The response to a request that violates the protocol or a limit.  head: what is known of it, without the body.
  virtual HttpResponse error(const HttpRequest& head, int status, const std::string& message) = 0;
};

struct HttpEndpoint {
  std::string host;  // an address, empty for a Unix socket
  uint16_t port = 0;
  std::string unix_path;
};

// Listens from its construction on, on a thread of its own.
class HttpTransport {
 public:
  virtual ~HttpTransport() = default;  // closes all connections
  virtual uint16_t port() const = 0;   // 0 for a Unix socket
  virtual size_t connections() const = 0;
  // Accepts no more connections, closes idle ones, and returns when all responses have been sent or after
  // limits.exit_seconds.  Returns whether all were sent.
  virtual bool drain() = 0;
};

// The module: a table, whose version is incremented with every change of this file and of Limits.
struct HttpModule {
  int version;
  // `handler` outlives the transport.  If the endpoint cannot be used, returns null and sets `error`.
  std::unique_ptr<HttpTransport> (*listen)(const HttpEndpoint& endpoint, const Limits& limits, HttpHandler& handler,
                                           std::string& error);
};

constexpr int kHttpModuleVersion = 4;
using HttpModuleEntry = const HttpModule* (*)();
constexpr const char* kHttpModuleEntry = "vitrail_serve_module";
constexpr const char* kHttpModuleFile = "vitrail_serve.so";

// Loads the module and listens.  Throws Error without the module, and if the endpoint cannot be used.
std::unique_ptr<HttpTransport> listen(const HttpEndpoint& endpoint, const Limits& limits, HttpHandler& handler);

}  // namespace vitrail::serve
