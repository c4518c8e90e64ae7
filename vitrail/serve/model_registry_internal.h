// SPDX-License-Identifier: Apache-2.0
#pragma once
// The models of a server by their names.
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/serve/served_model_internal.h"

namespace vitrail::serve {

// Says that files of these models have changed, without paths.
std::string changed_files(const std::string& models);

// Thread-safe.  A model that is replaced or removed lives until its last request has ended.
class ModelRegistry {
 public:
  // Loads nothing yet.
  explicit ModelRegistry(const ServeOptions& options);

  // Opens all models again; with an Error, the ones before remain.
  void load_all();
  // Opens the model of a known name.  Throws HttpError 404 for another name, and Error as vitrail::Model.
  void load(const std::string& name);
  void unload(const std::string& name);

  // Throws HttpError 404 for an unknown name, 503 if it is not loaded, and Error if it does not fit the task.  No name:
  // the first model that is loaded and fits.  No task: all fit.
  // An unknown name is an error of `option`.
  ModelPointer find(const std::optional<std::string>& name, const std::string& task = "",
                    const std::string& option = "model") const;
  // The loaded models whose files have changed: what they compute may be wrong, so that their requests get 503.
  std::vector<std::string> changed() const;
  // Why requests cannot be served: no model is loaded, or the files of some have changed.  Empty: they can.
  std::string fault() const;
  // All names in order, with null for those that are not loaded.
  std::vector<std::pair<std::string, ModelPointer>> list() const;

 private:
  size_t index_of(const std::string& name, const std::string& option = "model") const;
  void exchange(size_t index, ModelPointer model);

  std::vector<ModelSource> sources_;
  ModelOptions options_;
  mutable std::mutex mutex_;
  std::vector<ModelPointer> models_;  // parallel to sources_
};

}  // namespace vitrail::serve
