// SPDX-License-Identifier: Apache-2.0
#pragma once
// The interface between the library and its HTTP module, which links libcurl: a table of C functions, independent of
// the C++ ABI.
#include <cstddef>

namespace vitrail::hub {

constexpr int kHttpModuleVersion = 1;      // incremented with every change of the table
constexpr size_t kHttpMessageBytes = 512;  // size of the buffer for an error message

enum class HttpResult {
  complete = 0,
  unreachable = 1,  // the name is unknown, or there is no connection
  timed_out = 2,    // also a transfer that stalls
  insecure = 3,     // the certificate is not accepted
  cut = 4,          // the connection ended before the content did
  stopped = 5,      // a callback returned something else than 0
  failed = 6,
};

struct HttpRequest {
  const char* url;
  const char* const* headers;  // "Name: value", ended by null
  int connect_timeout_s;
  int stall_timeout_s;
  void* context;
  // Called with each line of the header, without its end; a status line begins another response.
  int (*on_header)(void* context, const char* line, size_t size);
  int (*on_data)(void* context, const char* data, size_t size);
};

struct HttpModule {
  int version;
  void* (*open)();  // null: out of memory
  void (*close)(void* client);
  // Sends a GET request and does not follow redirections.  message [kHttpMessageBytes]: the reason of a failure.
  HttpResult (*get)(void* client, const HttpRequest* request, char* message);
};

// The type and name of the only exported function of the module, and its file name.
using HttpModuleEntry = const HttpModule* (*)();
constexpr const char* kHttpModuleEntry = "vitrail_http_module";
constexpr const char* kHttpModuleFile = "vitrail_http.so";

}  // namespace vitrail::hub
