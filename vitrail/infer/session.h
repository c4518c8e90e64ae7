// SPDX-License-Identifier: Apache-2.0
#pragma once
// Session: a Vision Transformer compiled for inference, for any number of threads.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "vitrail/infer/program.h"
#include "vitrail/kernels/gemm/linear.h"
#include "vitrail/models/vision_transformer.h"

namespace vitrail::infer {

enum class Output : uint8_t { logits, features, attention };

// pooled: what the head reads [B, D].  cls [B, D].  patch [B, N, D].  all: every token [B, prefix + N, D].
enum class Tokens : uint8_t { pooled, cls, patch, all };

// What a run returns.
struct Request {
  Output output = Output::logits;
  Tokens tokens = Tokens::pooled;  // features
  int64_t layer = -1;              // features, attention: block from 0, or from the end when negative
  bool normalize = true;           // features: the model's final norm
  bool all_layers = false;         // attention: the weights of every block, not only of `layer`
};

struct SessionOptions {
  int threads = 0;  // 0: all that the process may use
  // Of the blocks' linear layers.  The head and all operations between linear layers are fp32.  Attention and the patch
  // embedding follow it too, but in int8 they are computed in `excluded_precision`.
  kernels::Precision precision = kernels::Precision::fp32;
  std::vector<std::string> excluded_layers;  // linear layers that are not in int8: "blocks.0.mlp.fc2"
  kernels::Precision excluded_precision = kernels::Precision::half;
  // Token merging (Bolya et al. 2023): how many tokens every block merges into others; 0: none.  Requests that name
  // single patches (features of patch or all tokens, attention) are then errors.
  int64_t merged_per_block = 0;
};

class Executor;

// Packs each weight once, and compiles a program for each request and image size on first use.  Each thread computes
// the same number of a batch's images, and all threads together the remainder.  run() is const and thread-safe: callers
// with more than one thread queue for the compute team.  Nothing else of the process is changed.
class Session {
 public:
  // Takes the model over: as its weights are packed, their original memory is given back.
  explicit Session(models::VisionTransformer model, const SessionOptions& options = {});
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // images [B, C, H, W] → the requested f32 tensors: one, or for attention with all_layers one per block
  // ([B, H, N, N] each).  Throws Error for images of a shape that the model does not take.
  std::vector<Tensor> run(const Tensor& images, const Request& request = {}) const;
  Tensor logits(const Tensor& images) const { return run(images)[0]; }
  // The same into contiguous f32 tensors of the results' shapes.  Once a shape has been seen, nothing is allocated
  // (for contiguous f32 images).
  void run_into(const Tensor& images, const Request& request, const std::vector<Tensor>& results) const;

  // The compiled program for images of this shape: its listing, and what bench --profile times.
  std::shared_ptr<const Program> program(const Shape& images, const Request& request = {}) const;
  // How many images of such a batch go through the model together: the batch size of the program that run() runs.
  int64_t images_per_pass(const Shape& images, const Request& request = {}) const;
  // How many threads work on each pass: 1 where the batch has images for each thread.
  int threads_at_work(const Shape& images) const;
  // Runs the program once, on the first images_per_pass() with threads_at_work(), and reports how long each step took.
  void profile(const Tensor& images, const std::function<void(size_t step, double seconds)>& after_step) const;

  const models::VisionTransformerConfig& config() const { return model_.config(); }
  const models::VisionTransformer& model() const { return model_; }
  size_t packed_bytes() const;
  int threads() const;
  kernels::Precision precision() const { return precision_; }

 private:
  std::vector<Tensor> trace(const Tensor& images, const Request& request) const;

  models::VisionTransformer model_;
  kernels::Precision precision_;
  std::unique_ptr<Executor> executor_;
};

}  // namespace vitrail::infer
