// SPDX-License-Identifier: Apache-2.0
#pragma once
// Model: from a model's files and images in memory to predictions, features and attention maps.  It gives the results
// of the command line: the model's precision, preprocessing and class names are those that `vitrail` uses.
//
//   const vitrail::Model model("runs/photos");
//   for (const auto& [index, label, probability] : model.classify(model.read("photo.jpg"), 3)) …
#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vitrail/image/decode.h"
#include "vitrail/image/image_view.h"
#include "vitrail/image/transform.h"
#include "vitrail/infer/session.h"
#include "vitrail/models/load.h"

namespace vitrail {

struct ModelOptions {
  int threads = 0;                                   // 0: as many as the process may use
  std::optional<kernels::Precision> precision = {};  // default: int8 for an int8 model, else fp32
  models::LoadOptions load = {};                     // configuration, key map, image size, preprocessing
  std::string labels = {};                           // a file of class names, as pipeline::class_names() reads it
  int64_t merged_per_block = 0;                      // token merging, as in infer::SessionOptions
};

struct Prediction {
  int64_t index = 0;  // class
  std::string label = {};
  // Softmax over all classes, the class's sigmoid, or the value itself of a regression: see models::activation_of().
  float probability = 0;
};

// The predictions of a row of logits.  names: of all classes, or none.  Errors name `where`, the image.
std::vector<Prediction> predictions_of(const models::ModelConfig& config, const std::vector<std::string>& names,
                                       std::span<const float> logits, int64_t top, const std::string& where);

struct AttentionMapOptions {
  int64_t layer = -1;                // index of a block; negative indices count from the end
  std::optional<int64_t> head = {};  // default: the mean over all heads
  bool rollout = false;              // attention rollout over all blocks instead
  // The pixel [x, y] of the image whose patch attends; default: the class token, without one the mean over all tokens.
  std::optional<std::array<int64_t, 2>> query = {};
};

// Thread-safe: const functions may be called from several threads; those that use several threads themselves queue for
// the compute team.  Functions of several images throw Error for none, and preprocess them on the model's threads.
class Model {
 public:
  // files: their path or, opened, themselves: a folder, a weights file, a training run's folder, or the name of a
  // bundled model. Throws Error for a missing or malformed file, and if the files leave preprocessing settings open.
  explicit Model(const models::ModelFiles& files, const ModelOptions& options = {});
  explicit Model(const models::OpenedModel& opened, const ModelOptions& options = {});  // options.load is not used

  // Decodes an image in the model's colour mode, which replaces that of the options.  Throws Error.
  image::Image read(const std::filesystem::path& path, image::DecodeOptions options = {}) const;
  image::Image decode(std::span<const std::byte> bytes, image::DecodeOptions options = {}) const;

  // The `top` most probable classes, in descending order.  Throws Error for a model without a head.
  std::vector<Prediction> classify(const image::ImageView& image, int64_t top = 5) const;
  std::vector<std::vector<Prediction>> classify(std::span<const image::ImageView> images, int64_t top = 5) const;

  // Features of one image [D], or [N, D] for several tokens, and of a batch [B, D] or [B, N, D]; several layers are the
  // axis before these.  The pooled features of the last block of a model with a projection (CLIP) are projected:
  // comparable with those of texts.
  Tensor embed(const image::ImageView& image, const infer::FeatureOptions& options = {}) const;
  Tensor embed(std::span<const image::ImageView> images, const infer::FeatureOptions& options = {}) const;

  // The attention to each patch [grid height, grid width], as analysis::patch_attention().
  Tensor attention(const image::ImageView& image, const AttentionMapOptions& options = {}) const;
  // The patch [row, column] that has the pixel [x, y] of an image of this size.  Throws Error if the model does not see
  // the pixel.
  std::array<int64_t, 2> patch_at(std::array<int64_t, 2> pixel, int64_t width, int64_t height) const;

  Tensor logits(std::span<const image::ImageView> images) const;  // [B, classes]
  struct LogitsAndFeatures {
    Tensor logits, features;  // [B, classes], [B, D]
  };
  LogitsAndFeatures logits_and_features(std::span<const image::ImageView> images) const;  // computed in one pass

  // The request whose result embed() returns.  Throws Error for no layer.
  infer::Request request_of(const infer::FeatureOptions& options) const;
  // The results of a request, each [B, …].  Images whose inputs differ in size run in several batches.
  std::vector<Tensor> run(std::span<const image::ImageView> images, const infer::Request& request = {}) const;
  // The input [B, C, H, W] of images whose inputs have one size.
  Tensor preprocess(std::span<const image::ImageView> images) const;
  // predictions_of() with the model's classes.
  std::vector<Prediction> predictions(std::span<const float> logits, int64_t top, const std::string& where) const;

  const models::ModelConfig& config() const { return config_; }
  // The class's name, or "class 7" if the model names none.
  std::string class_name(int64_t index) const;
  const std::vector<std::string>& class_names() const { return class_names_; }  // empty if the model names none
  const image::EvalTransform& transform() const { return transform_; }
  image::ColorMode color_mode() const { return color_mode_; }
  const infer::Session& session() const { return *session_; }

 private:
  void preprocess_into(const image::ImageView& image, float* out) const;

  models::ModelConfig config_;
  std::vector<std::string> class_names_;
  image::EvalTransform transform_;
  image::ColorMode color_mode_;
  std::unique_ptr<infer::Session> session_;
};

}  // namespace vitrail
