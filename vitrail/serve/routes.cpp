// SPDX-License-Identifier: Apache-2.0
#include "vitrail/serve/routes_internal.h"

#include <algorithm>

#include "vitrail/tasks/task.h"

namespace vitrail::serve {

namespace {

std::vector<Route> all_routes() {
  std::vector<Route> table;
  for (const std::string& task : tasks::task_names()) table.push_back({task, "POST", {"v1", task}, task_route});
  const Route others[]{
      {"embeddings", "POST", {"v1", "embeddings"}, embeddings_route},
      {"models", "GET", {"v1", "models"}, models_route},
      {"model", "GET", {"v1", "models", "*"}, model_route},
      {"live", "GET", {"livez"}, live_route, Access::kHealth},
      {"ready", "GET", {"healthz"}, ready_route, Access::kHealth},
      {"metrics", "GET", {"metrics"}, metrics_route},
      {"page", "GET", {}, page_route, Access::kPublic},
      {"page", "GET", {"page", "*"}, page_file_route, Access::kPublic},
      {"openapi", "GET", {"openapi.json"}, openapi_route, Access::kPublic},
      {"v2_live", "GET", {"v2", "health", "live"}, live_route, Access::kHealth},
      {"v2_ready", "GET", {"v2", "health", "ready"}, ready_route, Access::kHealth},
      {"v2_metadata", "GET", {"v2"}, server_metadata_route},
      {"v2_statistics", "GET", {"v2", "models", "stats"}, model_statistics_route},
      {"v2_statistics", "GET", {"v2", "models", "*", "stats"}, model_statistics_route},
      {"v2_statistics", "GET", {"v2", "models", "*", "versions", "*", "stats"}, model_statistics_route},
      {"v2_model", "GET", {"v2", "models", "*"}, model_metadata_route},
      {"v2_model", "GET", {"v2", "models", "*", "versions", "*"}, model_metadata_route},
      {"v2_config", "GET", {"v2", "models", "*", "config"}, model_config_route},
      {"v2_config", "GET", {"v2", "models", "*", "versions", "*", "config"}, model_config_route},
      {"v2_model_ready", "GET", {"v2", "models", "*", "ready"}, model_ready_route},
      {"v2_model_ready", "GET", {"v2", "models", "*", "versions", "*", "ready"}, model_ready_route},
      {"v2_infer", "POST", {"v2", "models", "*", "infer"}, infer_route},
      {"v2_infer", "POST", {"v2", "models", "*", "versions", "*", "infer"}, infer_route},
      {"v2_index", "POST", {"v2", "repository", "index"}, repository_index_route},
      {"v2_load", "POST", {"v2", "repository", "models", "*", "load"}, repository_change_route, Access::kManager},
      {"v2_unload", "POST", {"v2", "repository", "models", "*", "unload"}, repository_change_route, Access::kManager},
  };
  table.insert(table.end(), std::begin(others), std::end(others));
  return table;
}

}  // namespace

const std::vector<Route>& routes() {
  static const std::vector<Route> table = all_routes();
  return table;
}

const Route* find_route(std::string_view method, const std::vector<std::string>& path,
                        std::vector<std::string>& methods) {
  const std::string_view wanted = method == "HEAD" ? "GET" : method;
  for (const Route& route : routes()) {
    const bool fits = std::ranges::equal(route.path, path, [](const std::string& pattern, const std::string& segment) {
      return pattern == "*" || pattern == segment;
    });
    if (!fits) continue;
    if (route.method == wanted) return &route;
    methods.push_back(route.method);
  }
  return nullptr;
}

}  // namespace vitrail::serve
