// SPDX-License-Identifier: Apache-2.0
// The rows of all tasks, and of all families of models.
#include <algorithm>

#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/tasks/anomaly/anomaly_model.h"
#include "vitrail/tasks/clipseg/clipseg_model.h"
#include "vitrail/tasks/depth/depth_model.h"
#include "vitrail/tasks/detect/rf_detr_model.h"
#include "vitrail/tasks/detect/yolos_model.h"
#include "vitrail/tasks/images/hiera_model.h"
#include "vitrail/tasks/images/image_model.h"
#include "vitrail/tasks/label_map/eomt_model.h"
#include "vitrail/tasks/label_map/semantic_model.h"
#include "vitrail/tasks/loaded_model.h"
#include "vitrail/tasks/matte/matte_model.h"
#include "vitrail/tasks/open_detect/owl_model.h"
#include "vitrail/tasks/pose/pose_model.h"
#include "vitrail/tasks/segment/segment_model.h"
#include "vitrail/tasks/table_internal.h"

namespace vitrail::tasks {
namespace {

std::vector<Task>& table() {
#define VITRAIL_ROW(name) name##_task(),
  static std::vector<Task> rows{VITRAIL_TASKS(VITRAIL_ROW)};
#undef VITRAIL_ROW
  return rows;
}

// The first one that recognises a model takes it: a DPT for classes is like one for depth.  The last one takes what no
// other recognises, and says what is wrong with it.
const std::vector<Family>& families() {
  static const std::vector<Family> rows{segment_family(), semantic_family(), depth_family(), eomt_family(),
                                        clipseg_family(), matte_family(),    yolos_family(), rf_detr_family(),
                                        owl_family(),     pose_family(),     hiera_family(), anomaly_family(),
                                        image_family()};
  return rows;
}

}  // namespace

const std::vector<Task>& tasks() { return table(); }

std::vector<std::string> task_names() {
  std::vector<std::string> names;
  for (const Task& task : table()) {
    if (std::ranges::find(names, task.name) == names.end()) names.push_back(task.name);
  }
  return names;
}

const Task* find_task(const std::string& name, const LoadedModel& model) {
  for (const Task& task : table()) {
    if (task.name == name && task.fits(model)) return &task;
  }
  return nullptr;
}

std::string models_for_task(const std::string& name) {
  std::vector<std::string> models;
  for (const Task& task : table()) {
    if (task.name == name) models.push_back(task.model);
  }
  return join(models, ", or ");
}

void add_task(Task task) {
  const auto has_name = [&](const Task& other) { return other.name == task.name; };
  if (std::ranges::any_of(table(), has_name)) throw Error("task", "a name of its own", "'" + task.name + "'");
  table().push_back(std::move(task));
}

Tensor LoadedModel::input_of(const image::Image& /*photo*/) const {
  throw Error("model", "a model with passes", family());
}

std::vector<Tensor> LoadedModel::run(const Tensor& /*inputs*/, const infer::Request& /*pass*/) const {
  throw Error("model", "a model with passes", family());
}

std::shared_ptr<const ImageEncoding> LoadedModel::encode(const image::ImageView& /*photo*/) const { return nullptr; }

// Images are prepared in one way.
const OpenOptions& require_no_others(const OpenOptions& options, const char* family) {
  if (!options.model.labels.empty() || !options.tokenizer.empty() || options.model.load != models::LoadOptions{})
    throw Error("options of the model", str("threads and precision alone, for ", family), "others");
  return options;
}

std::unique_ptr<LoadedModel> open_model(const models::ModelFiles& files, const OpenOptions& options) {
  return family_of(files).load(files, options);
}

const Family& family_of(const models::ModelFiles& files) {
  return *std::ranges::find_if(families(), [&](const Family& family) { return family.recognises(files); });
}

const Family* family_of_architecture(const std::string& name) {
  const auto has = [&](const Family& family) { return family.has_architecture(name); };
  const auto found = std::ranges::find_if(families(), has);
  return found == families().end() ? nullptr : &*found;
}

const Task& first_task(const LoadedModel& model) {
  for (const Task& task : table()) {
    if (task.fits(model)) return task;
  }
  throw Error("model", "one that a task is for", model.family());
}

}  // namespace vitrail::tasks
