// SPDX-License-Identifier: Apache-2.0
#pragma once
// Session: a model ready to answer, for any number of threads.
#include <compare>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "vitrail/infer/packed_weights.h"
#include "vitrail/infer/program.h"
#include "vitrail/models/vision_transformer.h"

namespace vitrail::infer {

enum class Output : uint8_t { logits, features, attention };

// pooled: what the head reads [B, D].  cls [B, D].  patch [B, N, D].  all: every token [B, prefix + N, D].
enum class Tokens : uint8_t { pooled, cls, patch, all };

// What a run is to give back.
struct Request {
  Output output = Output::logits;
  Tokens tokens = Tokens::pooled;  // features
  int64_t layer = -1;              // features, attention: block from 0, or from the end when negative
  bool normalize = true;           // features: the model's final norm
  bool all_layers = false;         // attention: the weights of every block instead of `layer`'s
  auto operator<=>(const Request&) const = default;
};

struct SessionOptions {
  int threads = 0;  // 0: all that the process may use
  // Of the linear layers' products and, in bf16, attention's; everything between them is fp32, and so is the head,
  // which costs little and loses most.  In int8 the patch embedding, attention and the layers kept from int8 have a
  // precision of their own.
  kernels::Precision precision = kernels::Precision::fp32;
  std::vector<std::string> excluded_layers;  // "blocks.0.mlp.fc2"
  kernels::Precision excluded_precision = kernels::Precision::bf16;
  // What rounding to whole numbers has left of layers' weights (weight_correction.h), which are added to them but in
  // int8.
  std::map<std::string, weights::Int8Weight> rests;
  // Token merging (Bolya et al. 2023): how many tokens every block makes parts of others, for speed; 0: none.  Requests
  // that name single patches (features of patch or all tokens, attention) are then errors.
  int64_t merged_per_block = 0;
};

// Weights are packed once and shared; programs per (request, batch, height, width) live in a small cache; each run
// leases a workspace.  Of a batch each thread takes whole images, as many as every other, and all threads together what
// is left over; where intermediate results would not stay in cache, they go through in parts.  run() is const and
// thread-safe: callers with more than one thread queue for the compute team. Nothing of the process around it is
// changed.
class Session {
 public:
  // Takes the model over: as its weights are packed, their original memory is given back.
  explicit Session(models::VisionTransformer model, const SessionOptions& options = {});
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // images [B, C, H, W] f32 → the requested tensors: one, or for attention with all_layers one per block
  // ([B, H, N, N] each).  Throws Error for images of a shape that the model does not take.
  std::vector<Tensor> run(const Tensor& images, const Request& request = {}) const;
  Tensor logits(const Tensor& images) const { return run(images)[0]; }
  // The same into tensors of the caller's, contiguous f32 of the results' shapes: once a shape has been seen, nothing
  // is allocated (contiguous f32 images).
  void run_into(const Tensor& images, const Request& request, const std::vector<Tensor>& results) const;

  // The compiled program for images of this shape: its listing, and what bench --profile times.
  std::shared_ptr<const Program> program(const Shape& images, const Request& request = {}) const;
  // How many images of such a batch go through the model together; the program of that many is what run() runs.
  int64_t images_per_pass(const Shape& images, const Request& request = {}) const;
  // How many threads work at these: 1 where the batch has images for each thread.
  int threads_at_work(const Shape& images) const;
  // Runs the program once, on the first images_per_pass() with threads_at_work(), telling how long each step took.
  void profile(const Tensor& images, const std::function<void(size_t step, double seconds)>& after_step) const;

  const models::VisionTransformerConfig& config() const { return model_.config(); }
  const models::VisionTransformer& model() const { return model_; }
  size_t packed_bytes() const;
  int threads() const { return threads_; }
  kernels::Precision precision() const { return precision_; }

 private:
  struct Key {
    Request request;
    std::array<int64_t, 4> shape;
    auto operator<=>(const Key&) const = default;
  };
  class Workspace;
  struct Division;
  Division division(const Shape& images, const Request& request) const;
  std::vector<Tensor> trace(const Tensor& images, const Request& request) const;
  void run_parts(const Tensor& input, const Request& request, const std::vector<Tensor>& results) const;
  void run_images(const Tensor& input, const Request& request, int64_t first, int64_t last,
                  const std::vector<Tensor>& results) const;

  models::VisionTransformer model_;
  int threads_;
  kernels::Precision precision_, attention_;
  mutable std::mutex mutex_;  // guards what follows
  mutable PackedWeights weights_;
  mutable std::list<std::pair<Key, std::shared_ptr<const Program>>> programs_;  // most recently used first
  mutable std::vector<std::shared_ptr<Storage>> idle_workspaces_;
};

}  // namespace vitrail::infer
