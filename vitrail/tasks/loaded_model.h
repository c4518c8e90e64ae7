// SPDX-License-Identifier: Apache-2.0
#pragma once
// A model of any family, ready to run.
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vitrail/image/image_view.h"
#include "vitrail/models/model_files.h"
#include "vitrail/pipeline/model.h"
#include "vitrail/tasks/network.h"
#include "vitrail/tasks/task.h"

namespace vitrail::tasks {

// Const functions are thread-safe.
class LoadedModel {
 public:
  virtual ~LoadedModel() = default;

  virtual std::string family() const = 0;  // "a Vision Transformer", for errors
  virtual std::string config() const = 0;  // config.json
  virtual std::string facts() const = 0;   // a JSON object, as lists of models show it
  virtual kernels::Precision precision() const = 0;
  virtual image::ColorMode color_mode() const = 0;  // the colour mode of its images
  virtual Shape input_shape() const { return {}; }  // the shape of input_of(); empty: it takes images alone
  virtual std::vector<std::string> class_names() const { return {}; }  // empty if it names none
  virtual std::unique_ptr<Request> tensors() const = 0;                // the request for its tensors
  virtual void warm_up() const = 0;                                    // runs once
  // Without one, the model's family has its own row in `inspect`, `bench` and `convert`, or none.
  virtual std::optional<Network> network() const { return {}; }

  // For requests with passes: the model's input [C, H, W], and the results of a pass, each [B, …].  A model without
  // passes throws Error.
  virtual Tensor input_of(const image::Image& photo) const;
  virtual std::vector<Tensor> run(const Tensor& inputs, const infer::Request& pass) const;
  // For requests without: what all requests about an image share; null: nothing.
  virtual std::shared_ptr<const ImageEncoding> encode(const image::ImageView& photo) const;
};

struct OpenOptions {
  ModelOptions model = {};
  std::filesystem::path tokenizer = {};  // a dual model's; default: in its folder
  // A dual model without tokenizer takes images alone, with a warning that begins with this name; empty: it is an
  // Error.
  std::string images_alone = {};
};

// The options, if they are threads and precision alone.  Throws Error naming `family` ("Segment Anything") for others.
const OpenOptions& require_no_others(const OpenOptions& options, const char* family);

// A family of models: how its files are recognised and opened.
struct Family {
  std::string_view name;
  bool (*has_architecture)(const std::string& name) = [](const std::string& /*name*/) { return false; };  // registered
  bool (*recognises)(const models::ModelFiles& files);
  std::unique_ptr<LoadedModel> (*load)(const models::ModelFiles& files, const OpenOptions& options);
};

// The load() of a family.
template <class Model>
std::unique_ptr<LoadedModel> load_as(const models::ModelFiles& files, const OpenOptions& options) {
  return std::make_unique<Model>(files, options);
}

// Whether a model is one of a class; then the model itself.
template <class Model>
bool is_model(const LoadedModel& model) {
  return dynamic_cast<const Model*>(&model) != nullptr;
}
template <class Model>
const Model& as_model(const LoadedModel& model) {
  return dynamic_cast<const Model&>(model);
}

// The model that the files have.  Throws Error for malformed files, and for options that its family does not have.
std::unique_ptr<LoadedModel> open_model(const models::ModelFiles& files, const OpenOptions& options = {});

const Family& family_of(const models::ModelFiles& files);
const Family* family_of_architecture(const std::string& name);  // null: the name is not registered

// The task that a model is first of all for.
const Task& first_task(const LoadedModel& model);

}  // namespace vitrail::tasks
