// SPDX-License-Identifier: Apache-2.0
// The HTTP module: built as a shared object of its own (vitrail_http.so), which http.cpp loads, so that libcurl is
// loaded only by programs that download.  Proxies are those of the environment (https_proxy, no_proxy).
#include "vitrail/hub/http_module_internal.h"

#include <curl/curl.h>

#include <cstdio>
#include <memory>

namespace vitrail::hub {
namespace {

using Headers = std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)>;

size_t pass_header(char* data, size_t, size_t size, void* given) {
  const auto& request = *static_cast<const HttpRequest*>(given);
  size_t length = size;
  while (length > 0 && (data[length - 1] == '\n' || data[length - 1] == '\r')) --length;
  return request.on_header(request.context, data, length) == 0 ? size : 0;
}

size_t pass_data(char* data, size_t, size_t size, void* given) {
  const auto& request = *static_cast<const HttpRequest*>(given);
  return request.on_data(request.context, data, size) == 0 ? size : 0;
}

HttpResult result_of(CURLcode code) {
  switch (code) {
    case CURLE_OK:
      return HttpResult::complete;
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
      return HttpResult::unreachable;
    case CURLE_OPERATION_TIMEDOUT:
      return HttpResult::timed_out;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_CACERT_BADFILE:
      return HttpResult::insecure;
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
      return HttpResult::cut;
    case CURLE_WRITE_ERROR:
      return HttpResult::stopped;
    default:
      return HttpResult::failed;
  }
}

void set_options(CURL* curl, const HttpRequest& request, const curl_slist* headers, char* message) {
  curl_easy_reset(curl);  // keeps the connections
  curl_easy_setopt(curl, CURLOPT_URL, request.url);
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, message);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);  // for programs with threads
  curl_easy_setopt(curl, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, static_cast<long>(request.connect_timeout_s));
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, static_cast<long>(request.stall_timeout_s));
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, pass_header);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &request);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, pass_data);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &request);
}

HttpResult get(void* client, const HttpRequest* request, char* message) {
  static_assert(kHttpMessageBytes >= CURL_ERROR_SIZE);
  Headers headers(nullptr, curl_slist_free_all);
  for (const char* const* header = request->headers; *header; ++header) {
    curl_slist* const longer = curl_slist_append(headers.get(), *header);
    if (!longer) return HttpResult::failed;
    static_cast<void>(headers.release());
    headers.reset(longer);
  }
  message[0] = '\0';
  set_options(client, *request, headers.get(), message);
  const CURLcode code = curl_easy_perform(client);
  if (code != CURLE_OK && message[0] == '\0') {
    std::snprintf(message, kHttpMessageBytes, "%s", curl_easy_strerror(code));
  }
  return result_of(code);
}

void* open() {
  static const CURLcode initialized = curl_global_init(CURL_GLOBAL_DEFAULT);
  return initialized == CURLE_OK ? curl_easy_init() : nullptr;
}

void close(void* client) { curl_easy_cleanup(client); }

}  // namespace
}  // namespace vitrail::hub

extern "C" __attribute__((visibility("default"))) const vitrail::hub::HttpModule* vitrail_http_module() {
  using namespace vitrail::hub;
  static const HttpModule module{kHttpModuleVersion, open, close, get};
  return &module;
}
