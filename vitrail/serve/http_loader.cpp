// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/error.h"
#include "vitrail/base/module_loader_internal.h"
#include "vitrail/serve/http_internal.h"

namespace vitrail::serve {

std::unique_ptr<HttpTransport> listen(const HttpEndpoint& endpoint, const Limits& limits, HttpHandler& handler) {
  void* const entry = load_module({.where = "serve",
                                   .file = kHttpModuleFile,
                                   .entry = kHttpModuleEntry,
                                   .built = "where CMake finds Boost and VITRAIL_SERVE is ON"});
  const HttpModule* const module = reinterpret_cast<HttpModuleEntry>(entry)();
  if (module->version != kHttpModuleVersion)
    throw Error("serve", str("version ", kHttpModuleVersion, " of ", kHttpModuleFile), str(module->version));
  std::string error;
  std::unique_ptr<HttpTransport> transport = module->listen(endpoint, limits, handler, error);
  if (!transport) throw Error(error);
  return transport;
}

}  // namespace vitrail::serve
