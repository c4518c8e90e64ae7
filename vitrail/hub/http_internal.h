// SPDX-License-Identifier: Apache-2.0
#pragma once
// HTTP requests to the hub and to the servers that it redirects to.
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "vitrail/hub/http_module_internal.h"
#include "vitrail/hub/settings_internal.h"

namespace vitrail::hub {

struct HttpResponse {
  int status = 0;
  std::map<std::string, std::string> headers = {};  // names in lower case
  std::string body = {};                            // unless a sink takes it
  // complete, or why the content is not.  A request that gets no response throws.
  HttpResult result = HttpResult::complete;
  std::string message = {};  // why the transfer failed

  std::string header(const std::string& name) const;  // empty: none
};

// Takes the content of a response with status 2xx.  Returns false to stop the transfer.
using HttpSink = std::function<bool(const HttpResponse& head, std::string_view data)>;

class HttpClient {
 public:
  explicit HttpClient(Settings settings);  // throws Error if the module is missing
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Follows redirections.  The token goes to the endpoint's own server alone.  Failures to connect, "too many requests"
  // and errors of the server are tried again, after the time that the server asks for.  Throws Error without response,
  // and for a body without sink that has more than max_bytes.
  HttpResponse get(const std::string& url, size_t max_bytes);
  HttpResponse get(const std::string& url, const std::vector<std::string>& headers, const HttpSink& sink);

  const Settings& settings() const { return settings_; }

 private:
  HttpResponse follow(std::string url, const std::vector<std::string>& headers, const HttpSink& sink);
  HttpResponse send(const std::string& url, const std::vector<std::string>& headers, const HttpSink& sink);

  Settings settings_;
  const HttpModule& module_;
  void* client_;
};

// Waits before a request is tried again: half a second, and twice as long each time.
void wait_before_retry(int attempt);
constexpr int kMaxAttempts = 5;

// "https://host:port" of a URL.
std::string origin_of(const std::string& url);

}  // namespace vitrail::hub
