// SPDX-License-Identifier: Apache-2.0
#include "vitrail/serve/model_registry_internal.h"

#include <algorithm>
#include <set>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "vitrail/base/text.h"
#include "vitrail/models/bundled.h"
#include "vitrail/serve/http_error.h"

namespace vitrail::serve {
namespace {

constexpr const char* kNoModel = "no model is loaded";

std::vector<ModelSource> sources_of(const ServeOptions& options) {
  std::vector<ModelSource> sources = options.models;
  if (sources.empty()) {
    for (const models::BundledModel& model : models::bundled_models())
      sources.push_back({model.name, model.folder.string()});
    // The program's default model is the server's as well.
    const auto first = std::ranges::find(sources, models::kDefaultModel, &ModelSource::name);
    if (first != sources.end()) std::rotate(sources.begin(), first, first + 1);
  }
  if (sources.empty()) throw Error("serve", "a model (-m), or bundled models in the installation", "none");
  std::set<std::string> names;
  for (const ModelSource& source : sources) {
    if (!names.insert(source.name).second)
      throw Error("serve", "different names of models, as -m NAME=MODEL gives them", "'" + source.name + "' twice");
  }
  return sources;
}

// Returns the memory of models that no request holds any longer to the system: glibc keeps it for a process that may
// never need as much again.
void release_free_memory() {
#if defined(__GLIBC__)
  ::malloc_trim(0);
#endif
}

}  // namespace

std::string changed_files(const std::string& models) {
  return "files of " + models + " have changed: reload the models";
}

ModelRegistry::ModelRegistry(const ServeOptions& options)
    : sources_(sources_of(options)), options_(options.model), models_(sources_.size()) {}

size_t ModelRegistry::index_of(const std::string& name, const std::string& option) const {
  for (size_t i = 0; i < sources_.size(); ++i) {
    if (sources_[i].name == name) return i;
  }
  const std::string known = join(sources_, ", ", &ModelSource::name);
  throw HttpError(404, option + ": expected one of " + known + ", got '" + name + "'");
}

void ModelRegistry::load_all() {
  std::vector<ModelPointer> loaded;
  for (const ModelSource& source : sources_) loaded.push_back(std::make_shared<const ServedModel>(source, options_));
  {
    const std::lock_guard lock(mutex_);
    models_.swap(loaded);
  }
  loaded.clear();
  release_free_memory();
}

void ModelRegistry::load(const std::string& name) {
  const size_t index = index_of(name);
  exchange(index, std::make_shared<const ServedModel>(sources_[index], options_));
}

void ModelRegistry::unload(const std::string& name) { exchange(index_of(name), nullptr); }

void ModelRegistry::exchange(size_t index, ModelPointer model) {
  {
    const std::lock_guard lock(mutex_);
    model.swap(models_[index]);
  }
  model.reset();  // the model before, without the lock
  release_free_memory();
}

ModelPointer ModelRegistry::find(const std::optional<std::string>& name, const std::string& task,
                                 const std::string& option) const {
  const size_t wanted = name ? index_of(*name, option) : sources_.size();
  const std::lock_guard lock(mutex_);
  bool others = false;
  for (size_t i = 0; i < models_.size(); ++i) {
    if (!models_[i] || (name && i != wanted)) continue;
    if (task.empty() || tasks::find_task(task, models_[i]->loaded())) return models_[i];
    others = true;
  }
  if (others) throw Error("model", tasks::models_for_task(task), name ? "'" + *name + "'" : "none among those served");
  throw HttpError(503, name ? "the model '" + *name + "' is not loaded" : kNoModel);
}

std::vector<std::string> ModelRegistry::changed() const {
  std::vector<std::string> names;
  const std::lock_guard lock(mutex_);
  for (const ModelPointer& model : models_) {
    if (model && model->has_changed_files()) names.push_back(model->name());
  }
  return names;
}

std::string ModelRegistry::fault() const {
  if (const std::vector<std::string> names = changed(); !names.empty()) return changed_files(join(names));
  const std::lock_guard lock(mutex_);
  const bool any = std::ranges::any_of(models_, [](const ModelPointer& model) { return model != nullptr; });
  return any ? "" : kNoModel;
}

std::vector<std::pair<std::string, ModelPointer>> ModelRegistry::list() const {
  std::vector<std::pair<std::string, ModelPointer>> list;
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < sources_.size(); ++i) list.emplace_back(sources_[i].name, models_[i]);
  return list;
}

}  // namespace vitrail::serve
