// SPDX-License-Identifier: Apache-2.0
#pragma once
// The routes of the server.
#include <string>
#include <vector>

#include "vitrail/serve/call_internal.h"

namespace vitrail::serve {

enum class Access {
  kClient,   // with the key, if there is one
  kManager,  // likewise; changes what others get, so that a browser needs the token of the server's page
  kPublic,   // without the key, at once, while loading, draining and overloaded
  kHealth,   // likewise, and with any Host, since probes name a machine as they like
};

struct Route {
  std::string name;                      // in metrics and logs: "classify"
  std::string method;                    // GET includes HEAD
  std::vector<std::string> path;         // "*" is any segment
  void (*run)(const CallPointer& call);  // on the pool; may throw
  Access access = Access::kClient;

  bool is_public() const { return access == Access::kPublic || access == Access::kHealth; }
};

const std::vector<Route>& routes();

// Without a route for the path null; `methods` gets the methods that the path has.
const Route* find_route(std::string_view method, const std::vector<std::string>& path,
                        std::vector<std::string>& methods);

// vitrail's own routes.  That of a task has images in, and the command line's JSON or a PNG out.
void task_route(const CallPointer& call);
void models_route(const CallPointer& call);
void model_route(const CallPointer& call);

// OpenAI's form of embeddings.
void embeddings_route(const CallPointer& call);

// The Open Inference Protocol (KServe's version 2).
void server_metadata_route(const CallPointer& call);
void model_metadata_route(const CallPointer& call);
void model_config_route(const CallPointer& call);
void model_statistics_route(const CallPointer& call);
void model_ready_route(const CallPointer& call);
void infer_route(const CallPointer& call);
void repository_index_route(const CallPointer& call);
void repository_change_route(const CallPointer& call);

// Health, metrics, documentation.
void live_route(const CallPointer& call);
void ready_route(const CallPointer& call);
void metrics_route(const CallPointer& call);
void page_route(const CallPointer& call);
void page_file_route(const CallPointer& call);
void openapi_route(const CallPointer& call);

}  // namespace vitrail::serve
