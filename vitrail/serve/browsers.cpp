// SPDX-License-Identifier: Apache-2.0
#include "vitrail/serve/browsers_internal.h"

#include <arpa/inet.h>

#include <algorithm>
#include <random>

#include "vitrail/serve/http_error.h"
#include "vitrail/serve/ignoring_case_internal.h"

namespace vitrail::serve {
namespace {

constexpr std::string_view kTokenHeader = "vitrail-token";  // page/api.js sends it

// "localhost:3000" of "http://localhost:3000"; empty for other text.
std::string_view authority_of(std::string_view origin) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (origin.starts_with(scheme)) return origin.substr(scheme.size());
  }
  return {};
}

// The name or address in "localhost:8080" and "[::1]:8080", in lower case.
std::string name_of(std::string_view host) {
  const bool bracketed = host.starts_with('[');
  const std::string_view name =
      bracketed ? host.substr(1, host.find(']') - 1) : host.substr(0, std::min(host.find(':'), host.size()));
  std::string result(name);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

std::string random_token() {
  std::random_device random;  // the system's, which nobody can predict
  std::string token;
  for (int i = 0; i < 32; ++i) token += "0123456789abcdef"[random() % 16];
  return token;
}

}  // namespace

std::string address_of(const std::string& host) { return host == "localhost" ? "127.0.0.1" : host; }

bool is_loopback(const std::string& address) {
  in_addr v4{};
  if (::inet_pton(AF_INET, address.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  return address == "::1";
}

Browsers::Browsers(const ServeOptions& options)
    : origins_(options.cors),
      hosts_{"localhost", name_of(options.host)},
      token_(random_token()),
      has_key_(!options.api_key.empty()),
      on_loopback_(options.unix_path.empty() && is_loopback(address_of(options.host))) {
  for (const std::string& origin : origins_) {
    const std::string_view authority = authority_of(origin);
    const bool upper = std::ranges::any_of(origin, [](char c) { return c >= 'A' && c <= 'Z'; });
    if (authority.empty() || upper || authority.find_first_of("/?# ,*@") != authority.npos)
      throw Error("--cors", "an origin as browsers send it: https://example.org, http://localhost:3000",
                  "'" + origin + "'");
    hosts_.push_back(name_of(authority));
  }
}

bool Browsers::is_given(std::string_view origin) const { return std::ranges::find(origins_, origin) != origins_.end(); }

bool Browsers::is_known(std::string_view host) const {
  const std::string name = name_of(host);
  return is_loopback(name) || std::ranges::find(hosts_, name) != hosts_.end();
}

void Browsers::check(const HttpRequest& head) const {
  if (has_key_ || !on_loopback_) return;
  const std::string_view host = head.header("host"), origin = head.header("origin");
  // A name of someone else may lead here, and then a page of that name could read what is served (DNS rebinding).
  // Requests without Host are of HTTP/1.0, which browsers do not send.
  if (!host.empty() && !is_known(host))
    throw HttpError(403, "Host: expected localhost, a loopback address or a name of --cors, got '" + str(host) + "'");
  if (head.method == "GET" || head.method == "HEAD" || origin.empty() || is_given(origin)) return;
  if (authority_of(origin) != host)
    throw HttpError(403, "Origin: expected the server's own page or an origin of --cors, got '" + str(origin) + "'");
}

void Browsers::check_token(const HttpRequest& head) const {
  const bool of_browser = !head.header("origin").empty() || !head.header("sec-fetch-site").empty();
  if (has_key_ || !of_browser || is_given(head.header("origin")) || head.header(kTokenHeader) == token_) return;
  throw HttpError(403, "expected the token of the server's page: reload the page");
}

std::optional<HttpResponse> Browsers::preflight(const HttpRequest& head) const {
  const bool asks = head.method == "OPTIONS" && !head.header("access-control-request-method").empty();
  if (!asks || !is_given(head.header("origin"))) return std::nullopt;
  HttpResponse response{.headers = {{"Access-Control-Allow-Methods", "GET, POST"}, {"Access-Control-Max-Age", "600"}}};
  const std::string_view headers = head.header("access-control-request-headers");
  if (!headers.empty()) response.headers.emplace_back("Access-Control-Allow-Headers", headers);
  permit(head, response);
  return response;
}

void Browsers::permit(const HttpRequest& head, HttpResponse& response) const {
  if (origins_.empty()) return;
  response.headers.emplace_back("Vary", "Origin");
  const std::string_view origin = head.header("origin");
  if (!is_given(origin)) return;
  response.headers.emplace_back("Access-Control-Allow-Origin", origin);
  response.headers.emplace_back("Access-Control-Expose-Headers",
                                "Server-Timing, Inference-Header-Content-Length, X-Request-Id");
}

}  // namespace vitrail::serve
