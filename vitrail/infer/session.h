// SPDX-License-Identifier: Apache-2.0
#pragma once
// Session: a Vision Transformer compiled for inference.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "vitrail/infer/program.h"
#include "vitrail/kernels/gemm/linear.h"
#include "vitrail/models/vision_transformer.h"

namespace vitrail::infer {

// logits_and_features: two results of one pass.
enum class Output : uint8_t { logits, features, attention, logits_and_features };

// pooled: the head's input [B, D].  cls [B, D].  patch [B, N, D].  grid: the same, [B, rows, columns, D].
// all [B, prefix + N, D].
enum class Tokens : uint8_t { pooled, cls, patch, grid, all };

// The features of an image that are computed.  Negative indices of blocks count from the end.
struct FeatureOptions {
  Tokens tokens = Tokens::pooled;
  std::vector<int64_t> layers{-1};  // indices of blocks, at least one; several are computed in one pass: [B, layers, …]
  bool final_norm = true;           // apply the model's final norm
  bool l2_normalize = false;        // scale each vector to length 1; a norm below 1e-12 counts as 1e-12
  bool operator==(const FeatureOptions&) const = default;
};

// The output of a run.  The fields after `output` apply to the outputs that their comments name.
struct Request {
  Output output = Output::logits;
  FeatureOptions features = {};  // features, logits_and_features; logits: l2_normalize alone
  int64_t layer = -1;            // attention: index of a block
  bool all_layers = false;       // attention: the weights of every block instead of those of `layer`
  bool operator==(const Request&) const = default;
};

struct SessionOptions {
  int threads = 0;  // 0: as many as the process may use
  // Precision of the blocks' linear layers, of attention, of the patch embedding and of the keys and values of
  // attention pooling.  In an int8 session, those outside the blocks' linear layers have `excluded_precision`.  The
  // head and all operations between linear layers are fp32.
  kernels::Precision precision = kernels::Precision::fp32;
  std::vector<std::string> excluded_layers = {};  // linear layers of the blocks that are not int8: "blocks.0.mlp.fc2"
  kernels::Precision excluded_precision = kernels::Precision::half;
  // Token merging (Bolya et al. 2023): the number of tokens that every block merges into others; 0: none.  Requests
  // that need one token per patch (features of patch or all tokens, attention) then throw Error.
  int64_t merged_per_block = 0;
};

class Executor;

// Packs each weight once, and compiles a program for each request and image size at its first use.  Every thread
// computes the same number of images of a batch, and all threads together compute the remaining ones.  run() is const
// and thread-safe; runs that use several threads queue for the compute team.
class Session {
 public:
  // Packing a weight releases its original memory, so model() cannot compute afterwards.
  explicit Session(models::VisionTransformer model, const SessionOptions& options = {});
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // images [B, C, H, W] → the requested f32 tensor; for logits_and_features both; for attention with all_layers one
  // tensor [B, H, N, N] per block.
  // Throws Error for images of a shape that the model does not accept.
  std::vector<Tensor> run(const Tensor& images, const Request& request = {}) const;
  Tensor logits(const Tensor& images) const { return run(images)[0]; }
  // Writes into contiguous f32 tensors of the results' shapes.  Repeated calls with contiguous f32 images of the same
  // shape allocate nothing.
  void run_into(const Tensor& images, const Request& request, const std::vector<Tensor>& results) const;

  // The program for this batch as one part, for listings and the number of operations.
  std::shared_ptr<const Program> program(const Shape& images, const Request& request = {}) const;
  // The number of images of such a batch that go through the steps together: the batch size of run()'s program.
  int64_t images_per_pass(const Shape& images, const Request& request = {}) const;
  // The number of threads that compute a pass: 1 if the batch has at least one image per thread.
  int threads_at_work(const Shape& images) const;
  // Runs one pass of images_per_pass() images on threads_at_work() threads, and reports the duration of each step.
  void profile(const Tensor& images, const std::function<void(size_t step, double seconds)>& after_step) const;

  const models::VisionTransformerConfig& config() const { return model_.config(); }
  const models::VisionTransformer& model() const { return model_; }
  size_t packed_bytes() const;  // memory of the packed weights
  int threads() const;
  kernels::Precision precision() const { return precision_; }

 private:
  std::vector<Tensor> trace(const Tensor& images, const Request& request) const;

  models::VisionTransformer model_;
  kernels::Precision precision_;
  std::unique_ptr<Executor> executor_;
};

}  // namespace vitrail::infer
