// SPDX-License-Identifier: Apache-2.0
#pragma once
// What web pages may ask of the server.  A browser sends requests of any page that its user has open.
#include <optional>
#include <string>
#include <vector>

#include "vitrail/serve/http_internal.h"
#include "vitrail/serve/options.h"

namespace vitrail::serve {

// The address of a host: for localhost 127.0.0.1, else the text itself.
std::string address_of(const std::string& host);
// Whether an address, as inet_pton() reads it, is of this machine alone.
bool is_loopback(const std::string& address);

class Browsers {
 public:
  // Throws Error for an origin in `options.cors` that is not "https://example.org" or "http://localhost:3000".
  explicit Browsers(const ServeOptions& options);

  // Without a key on a loopback address: throws HttpError 403 for a Host that is neither a name of this machine nor one
  // that the options have, and for a POST whose Origin is neither the server's own nor one of options.cors.
  void check(const HttpRequest& head) const;
  // Without a key: throws HttpError 403 for a browser's request without the token of the page, unless its origin is one
  // of options.cors.
  void check_token(const HttpRequest& head) const;
  // The response to a browser that asks what an origin of options.cors may send; none: the request is another one.
  std::optional<HttpResponse> preflight(const HttpRequest& head) const;
  // Lets the page of an origin of options.cors read the response.
  void permit(const HttpRequest& head, HttpResponse& response) const;

  const std::string& token() const { return token_; }  // in the server's page; new in each process

 private:
  bool is_given(std::string_view origin) const;
  bool is_known(std::string_view host) const;

  std::vector<std::string> origins_, hosts_;
  std::string token_;
  bool has_key_, on_loopback_;
};

}  // namespace vitrail::serve
