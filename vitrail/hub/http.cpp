// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <chrono>
#include <thread>

#include "vitrail/base/error.h"
#include "vitrail/base/module_loader_internal.h"
#include "vitrail/hub/http_internal.h"

namespace vitrail::hub {
namespace {

const HttpModule& http_module() {
  static const HttpModule& module = []() -> const HttpModule& {
    void* const entry = load_module({.where = "hub: downloading",
                                     .file = kHttpModuleFile,
                                     .entry = kHttpModuleEntry,
                                     .built = "where CMake finds libcurl and VITRAIL_HUB is ON"});
    const HttpModule* const loaded = reinterpret_cast<HttpModuleEntry>(entry)();
    if (loaded->version == kHttpModuleVersion) return *loaded;
    throw Error("hub: downloading", str("version ", kHttpModuleVersion, " of ", kHttpModuleFile), str(loaded->version));
  }();
  return module;
}

// What the callbacks of one request know.  No exception crosses the module, so that one is kept here.
struct Exchange {
  HttpResponse response;
  const HttpSink& sink;
  std::exception_ptr failure = nullptr;
};

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; });
  return result;
}

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  return begin == text.npos ? "" : text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

// "HTTP/1.1 200 OK" begins a response, "Name: value" belongs to it.
void add_header(HttpResponse& response, std::string_view line) {
  if (line.starts_with("HTTP/")) {
    response = {};
    const size_t space = line.find(' ');
    if (space != line.npos) std::from_chars(line.data() + space + 1, line.data() + line.size(), response.status);
    return;
  }
  constexpr size_t kMaxHeaders = 200;
  const size_t colon = line.find(':');
  if (colon == line.npos || response.headers.size() >= kMaxHeaders) return;
  response.headers[lower(line.substr(0, colon))] = trimmed(line.substr(colon + 1));
}

int on_header(void* context, const char* line, size_t size) try {
  add_header(static_cast<Exchange*>(context)->response, {line, size});
  return 0;
} catch (...) {
  static_cast<Exchange*>(context)->failure = std::current_exception();
  return 1;
}

int on_data(void* context, const char* data, size_t size) try {
  auto& exchange = *static_cast<Exchange*>(context);
  const int status = exchange.response.status;
  if (status >= 200 && status < 300) return exchange.sink(exchange.response, {data, size}) ? 0 : 1;
  // The text of an error: enough of it for a message.
  constexpr size_t kMaxErrorBytes = 4096;
  std::string& body = exchange.response.body;
  body.append(data, std::min(size, kMaxErrorBytes - std::min(kMaxErrorBytes, body.size())));
  return 0;
} catch (...) {
  static_cast<Exchange*>(context)->failure = std::current_exception();
  return 1;
}

bool is_redirection(int status) { return status >= 301 && status <= 308 && status != 304; }
bool is_temporary(int status) { return status == 408 || status == 429 || status >= 500; }

// An absolute URL, or one relative to the server's root.
std::string redirected(const std::string& from, const std::string& location) {
  std::string url = location;
  if (location.starts_with("//"))
    url = from.substr(0, from.find(':') + 1) + location;
  else if (location.starts_with('/'))
    url = origin_of(from) + location;
  const bool web = url.starts_with("https://") || (url.starts_with("http://") && from.starts_with("http://"));
  if (!web || !std::ranges::all_of(url, [](char c) { return c > ' ' && c < 0x7f; })) {
    throw Error(from, "a redirection to a URL with https://", "\"" + location.substr(0, 200) + "\"");
  }
  return url;
}

std::string advice(const Settings& settings, HttpResult result) {
  const std::string server = settings.endpoint;
  if (result == HttpResult::insecure) return "Is a proxy between? Its certificate has to be in the system's store";
  return "Check the connection and the proxy (https_proxy); HF_ENDPOINT names a mirror of " + server +
         "; or download the model's files elsewhere and give their folder";
}

// Retry-After in seconds, if it is short enough to wait for.
int retry_after(const HttpResponse& response) {
  constexpr int kMaxSeconds = 120;
  const std::string text = response.header("retry-after");
  int seconds = 0;
  std::from_chars(text.data(), text.data() + text.size(), seconds);
  return std::clamp(seconds, 0, kMaxSeconds);
}

}  // namespace

std::string origin_of(const std::string& url) {
  const size_t host = url.find("://");
  return host == url.npos ? "" : url.substr(0, url.find_first_of("/?#", host + 3));
}

void wait_before_retry(int attempt) {
  std::this_thread::sleep_for(std::chrono::milliseconds(500 << std::min(attempt, 5)));
}

std::string HttpResponse::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

HttpClient::HttpClient(Settings settings)
    : settings_(std::move(settings)), module_(http_module()), client_(module_.open()) {
  if (!client_) throw std::bad_alloc();
}

HttpClient::~HttpClient() { module_.close(client_); }

HttpResponse HttpClient::send(const std::string& url, const std::vector<std::string>& headers, const HttpSink& sink) {
  std::vector<std::string> all = headers;
  all.insert(all.end(), {"User-Agent: vitrail", "Accept-Encoding: identity"});
  const std::string origin = origin_of(url);
  if (origin == origin_of(settings_.endpoint)) {
    if (!settings_.authorization.empty())
      all.push_back("Authorization: " + settings_.authorization);
    else if (!settings_.token.empty())
      all.push_back("Authorization: Bearer " + settings_.token);
  }
  std::vector<const char*> lines;
  for (const std::string& line : all) lines.push_back(line.c_str());
  lines.push_back(nullptr);
  Exchange exchange{{}, sink};
  const HttpRequest request{
      url.c_str(), lines.data(), settings_.connect_timeout_s, settings_.stall_timeout_s, &exchange, on_header, on_data};
  char message[kHttpMessageBytes] = "";
  exchange.response.result = HttpResult::complete;
  const HttpResult result = module_.get(client_, &request, message);
  if (exchange.failure) std::rethrow_exception(exchange.failure);
  exchange.response.result = result;
  exchange.response.message = message;
  return exchange.response;
}

HttpResponse HttpClient::follow(std::string url, const std::vector<std::string>& headers, const HttpSink& sink) {
  constexpr int kMaxRedirections = 10;
  for (int i = 0; i < kMaxRedirections; ++i) {
    HttpResponse response = send(url, headers, sink);
    if (!is_redirection(response.status)) return response;
    url = redirected(url, response.header("location"));
  }
  throw Error(url, str("at most ", kMaxRedirections, " redirections"), "more");
}

HttpResponse HttpClient::get(const std::string& url, const std::vector<std::string>& headers, const HttpSink& sink) {
  for (int attempt = 0;; ++attempt) {
    const HttpResponse response = follow(url, headers, sink);
    const bool has_response = response.status != 0;
    if (has_response && !is_temporary(response.status)) return response;
    const bool last = attempt + 1 == kMaxAttempts || response.result == HttpResult::insecure;
    if (last && has_response) return response;
    if (last) throw Error(str(url, ": ", response.message, ". ", advice(settings_, response.result)));
    if (const int seconds = retry_after(response))
      std::this_thread::sleep_for(std::chrono::seconds(seconds));
    else
      wait_before_retry(attempt);
  }
}

HttpResponse HttpClient::get(const std::string& url, size_t max_bytes) {
  std::string body;
  for (int attempt = 0;; ++attempt) {
    body.clear();
    HttpResponse response = get(url, {}, [&](const HttpResponse&, std::string_view data) {
      body += data;
      return body.size() <= max_bytes;
    });
    if (body.size() > max_bytes) throw Error(url, str("at most ", max_bytes, " bytes"), "more");
    if (response.result == HttpResult::complete) {
      if (response.status < 300) response.body = std::move(body);
      return response;
    }
    if (attempt + 1 == kMaxAttempts) {
      throw Error(str(url, ": ", response.message, ". ", advice(settings_, response.result)));
    }
    wait_before_retry(attempt);
  }
}

}  // namespace vitrail::hub
