// SPDX-License-Identifier: Apache-2.0
#pragma once
// CLIPSeg: the probability that a text describes each pixel.  An image is encoded once for all texts.
#include <mutex>
#include <string>
#include <vector>

#include "vitrail/infer/function_session.h"
#include "vitrail/models/clipseg/clipseg.h"
#include "vitrail/pipeline/dual_model.h"
#include "vitrail/tasks/loaded_model.h"

namespace vitrail::tasks {

struct ClipSegEncoding : ImageEncoding {
  size_t bytes() const override { return static_cast<size_t>(tokens.numel()) * sizeof(float); }
  Tensor tokens;  // those that the decoder reads, [1, layers, 1 + n·n, D]
};

class ClipSegModel : public LoadedModel {
 public:
  // Throws Error for options other than threads and precision.
  ClipSegModel(const models::ModelFiles& files, const OpenOptions& options);
  ~ClipSegModel() override;

  std::string family() const override { return "CLIPSeg"; }
  std::string config() const override;
  std::string facts() const override;
  kernels::Precision precision() const override { return precision_; }
  image::ColorMode color_mode() const override { return towers_.images().color_mode(); }
  std::unique_ptr<Request> tensors() const override;
  void warm_up() const override;
  // The first call reads the weights again.
  std::optional<Network> network() const override;
  std::shared_ptr<const ImageEncoding> encode(const image::ImageView& photo) const override;

  // The embedding of each text [T, D], as DualModel::embed_texts().
  Tensor embed(const std::vector<std::string>& texts, const ProgressCallback& progress = {}) const;
  // Logits [n, n] at the size of the model's input.  text: a row of embed().
  Tensor logits(const ImageEncoding& encoding, const Tensor& text) const;

 private:
  struct Whole;  // the image tower with the decoder

  int threads_;
  kernels::Precision precision_;
  models::ClipSegFiles files_;
  DualModel towers_;
  models::ClipSegDecoder decoder_;
  std::unique_ptr<infer::FunctionSession> session_;  // the decoder
  mutable std::once_flag whole_once_;
  mutable std::unique_ptr<Whole> whole_;  // null: network() was not called
};

Family clipseg_family();

}  // namespace vitrail::tasks
