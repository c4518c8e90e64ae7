// SPDX-License-Identifier: Apache-2.0
// The page, and /openapi.json.
#include "vitrail/serve/http_error.h"
#include "vitrail/serve/page_files_internal.h"
#include "vitrail/serve/routes_internal.h"

namespace vitrail::serve {
namespace {

// The page runs only its own scripts, and sends requests only to its own server.
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const char* type_of(std::string_view name) {
  if (name.ends_with(".html")) return "text/html; charset=utf-8";
  if (name.ends_with(".css")) return "text/css; charset=utf-8";
  if (name.ends_with(".jpg")) return "image/jpeg";
  return name.ends_with(".js") ? "text/javascript; charset=utf-8" : "application/json";
}

constexpr std::string_view kTokenPlace = "{token}";

void send_file(Call& call, std::string_view name) {
  for (const EmbeddedFile& file : page_files()) {
    if (file.name != name) continue;
    std::string text(file.text);
    if (const size_t at = text.find(kTokenPlace); at != text.npos)
      text.replace(at, kTokenPlace.size(), call.engine().browsers.token());
    return call.respond({.content_type = type_of(name),
                         .body = std::move(text),
                         .headers = {{"Content-Security-Policy", kPolicy},
                                     {"X-Content-Type-Options", "nosniff"},
                                     {"Referrer-Policy", "no-referrer"},
                                     {"Cache-Control", "no-cache"}}});
  }
  throw HttpError(404, "no such file");
}

}  // namespace

void page_route(const CallPointer& call) { send_file(*call, "index.html"); }
void page_file_route(const CallPointer& call) { send_file(*call, call->target().path[1]); }
void openapi_route(const CallPointer& call) { send_file(*call, "openapi"); }

}  // namespace vitrail::serve
