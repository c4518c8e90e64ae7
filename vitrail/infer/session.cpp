// SPDX-License-Identifier: Apache-2.0
#include "vitrail/infer/session.h"

#include <algorithm>
#include <cstring>

#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/infer/compile.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::infer {
namespace {

// A full batch, the last smaller one, and single images, for a few requests and sizes.
constexpr size_t kMaxPrograms = 16;

// How much of a workspace images that run together may take, for each thread: about what a core has of the last two
// levels of cache to itself.  A larger batch is run in parts, each through the whole model, so that what one step
// writes is still there when the next one reads it: 64 images through the 192-wide CIFAR model take 211 ms in place of
// 224 (two cores of Zen 3, medians of ten runs each in turns), 8 through ViT-Ti the same as before in half the
// workspace.
constexpr size_t kCachePerThread = size_t{2} << 20;

// Neighbouring images in parts of about equal length.
struct Parts {
  int64_t first, images, count;

  int64_t begin(int64_t part) const { return first + images * part / count; }
  int64_t longest() const { return (images + count - 1) / count; }
};

int64_t quotient_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

Tensor selected_tokens(const models::VisionTransformer& model, const Tensor& images, const Request& request) {
  const int64_t prefix = model.num_prefix_tokens();
  Tensor shares;
  const Tensor tokens = model.intermediate(images, request.layer, request.normalize, &shares);
  switch (request.tokens) {
    case Tokens::pooled:
      return model.pool(tokens, shares);
    case Tokens::cls:
      if (!model.config().class_token)
        throw Error("tokens", "patch, pooled or all (the model has no class token)", "cls");
      return ops::contiguous(tokens.select(1, 0));
    case Tokens::patch:
      return ops::contiguous(tokens.narrow(1, prefix, tokens.size(1) - prefix));
    case Tokens::all:
      break;
  }
  return tokens;
}

Shape with_batch(Shape shape, int64_t batch) {
  shape[0] = batch;
  return shape;
}

// Merged tokens stand nowhere in the image.
bool names_patches(const Request& request) {
  if (request.output == Output::features) return request.tokens == Tokens::patch || request.tokens == Tokens::all;
  return request.output == Output::attention;
}

Tensor checked(const Tensor& images) {
  if (images.rank() == 4 && images.size(0) == 0) throw Error("session", "at least one image", "an empty batch");
  return images.to(DType::f32).contiguous();
}

// Of what is no block's linear layer and not left in fp32: the patch embedding and attention.
kernels::Precision outer_precision(const SessionOptions& options) {
  return options.precision == kernels::Precision::int8 ? options.excluded_precision : options.precision;
}

// What a session computes otherwise than `precision` says: all that is not in a block, and what it is told to keep.
PackedWeights::Exceptions exceptions(const models::VisionTransformer& model, const SessionOptions& options) {
  PackedWeights::Exceptions result;
  for (const nn::NamedTensor& parameter : model.named_parameters()) {
    if (parameter.name.starts_with("blocks.")) continue;
    const bool pixels = parameter.name.starts_with("patch_embed.");
    result[parameter.tensor.storage().get()] = pixels ? outer_precision(options) : kernels::Precision::fp32;
  }
  if (options.precision != kernels::Precision::int8) return result;
  for (const std::string& layer : options.excluded_layers) {
    result[model.parameter(layer + ".weight").storage().get()] = options.excluded_precision;
  }
  return result;
}

PackedWeights::Rests rests(const models::VisionTransformer& model, const SessionOptions& options) {
  PackedWeights::Rests result;
  for (const auto& [layer, rest] : options.rests) {
    const Tensor weight = model.parameter(layer + ".weight");
    if (!(rest.numbers.shape() == weight.shape())) {
      throw Error("session", str("a rest ", weight.shape(), " of ", layer), rest.numbers.shape().to_string());
    }
    weights::check_int8(rest);
    result[weight.storage().get()] = rest;
  }
  return result;
}

}  // namespace

// A workspace taken from the idle ones, or a new one; it goes back when the run ends.
class Session::Workspace {
 public:
  Workspace(const Session& session, size_t bytes) : session_(session) {
    const std::lock_guard lock(session.mutex_);
    auto& idle = session.idle_workspaces_;
    const auto fits = std::find_if(idle.begin(), idle.end(), [bytes](const auto& s) { return s->bytes() >= bytes; });
    if (fits != idle.end()) {
      storage_ = std::move(*fits);
      idle.erase(fits);
    } else {
      if (!idle.empty()) idle.pop_back();  // too small: let the larger one take its place
      storage_ = Storage::allocate(std::max<size_t>(bytes, 1));
    }
  }
  ~Workspace() {
    const std::lock_guard lock(session_.mutex_);
    session_.idle_workspaces_.push_back(std::move(storage_));
  }
  std::byte* data() const { return storage_->data(); }

  // Enough idle ones for `count` runs at once, so that none of them has to make its own.
  static void reserve(const Session& session, int64_t count, size_t bytes) {
    const std::lock_guard lock(session.mutex_);
    auto& idle = session.idle_workspaces_;
    std::erase_if(idle, [bytes](const auto& s) { return s->bytes() < bytes; });
    while (std::ssize(idle) < count) idle.push_back(Storage::allocate(std::max<size_t>(bytes, 1)));
  }

 private:
  const Session& session_;
  std::shared_ptr<Storage> storage_;
};

Session::Session(models::VisionTransformer model, const SessionOptions& options)
    : model_(std::move(model)),
      threads_(options.threads > 0 ? options.threads : available_threads()),
      precision_(options.precision),
      attention_(outer_precision(options)),
      weights_(precision_, exceptions(model_, options), rests(model_, options)) {
  if (options.merged_per_block < 0) throw Error("session", "0 or more merged tokens", str(options.merged_per_block));
  model_.merge_tokens(options.merged_per_block);
  model_.eval();
}
Session::~Session() = default;

std::vector<Tensor> Session::trace(const Tensor& images, const Request& request) const {
  if (model_.merged_per_block() > 0 && names_patches(request)) {
    throw Error("session", "a model that merges no tokens (single patches are asked for)",
                str(model_.merged_per_block(), " merged in every block"));
  }
  switch (request.output) {
    case Output::logits:
      return {model_.forward(images)};
    case Output::attention: {
      if (request.all_layers) return model_.attention_maps(images);
      return {model_.attention_maps(images, request.layer).at(0)};
    }
    case Output::features:
      break;
  }
  return {selected_tokens(model_, images, request)};
}

std::shared_ptr<const Program> Session::program(const Shape& images, const Request& request) const {
  if (images.rank() != 4) throw Error("session", "images [B, C, H, W]", images.to_string());
  const std::lock_guard lock(mutex_);
  const Key key{request, {images[0], images[1], images[2], images[3]}};
  const auto found =
      std::find_if(programs_.begin(), programs_.end(), [&](const auto& item) { return item.first == key; });
  if (found != programs_.end()) {
    programs_.splice(programs_.begin(), programs_, found);
    return found->second;
  }
  const ops::Recorder recorder;
  const Tensor input = Tensor::empty(images, DType::f32, Device::meta);
  const std::vector<Tensor> outputs = trace(input, request);
  auto program =
      std::make_shared<const Program>(compile(recorder.operations(), input, outputs, weights_,
                                              {attention_, model_.config().class_token, model_.num_head_tokens()}));
  programs_.emplace_front(key, program);
  if (programs_.size() > kMaxPrograms) programs_.pop_back();
  return program;
}

// Each thread takes as many whole images as every other and goes through the model with them alone, waiting for nobody
// and with an image's rows in its own cache; those that are left over are worked at by all threads together.
struct Session::Division {
  Parts dealt, shared;
};

Session::Division Session::division(const Shape& images, const Request& request) const {
  if (images.rank() != 4) throw Error("session", "images [B, C, H, W]", images.to_string());
  const int64_t own = images[0] / threads_, dealt = own * threads_, left = images[0] - dealt;
  const size_t one = std::max<size_t>(1, program(with_batch(images, 1), request)->workspace_bytes());
  auto most = [&](int threads) {
    return std::max<int64_t>(1, static_cast<int64_t>(kCachePerThread * static_cast<size_t>(threads) / one));
  };
  return {{0, dealt, threads_ * quotient_up(own, most(1))}, {dealt, left, quotient_up(left, most(threads_))}};
}

int64_t Session::images_per_pass(const Shape& images, const Request& request) const {
  const Division parts = division(images, request);
  return parts.dealt.count > 0 ? parts.dealt.longest() : parts.shared.count > 0 ? parts.shared.longest() : 1;
}

int Session::threads_at_work(const Shape& images) const { return images[0] >= threads_ ? 1 : threads_; }

std::vector<Tensor> Session::run(const Tensor& images, const Request& request) const {
  const Tensor input = checked(images);
  const ComputeTeam team(threads_);
  const int64_t at_once = images_per_pass(input.shape(), request);
  const auto program = this->program(with_batch(input.shape(), at_once), request);
  std::vector<Tensor> results;
  for (const ProgramOutput& output : program->outputs()) {
    results.push_back(Tensor::empty(with_batch(output.shape, input.size(0))));
  }
  run_parts(input, request, results);
  return results;
}

void Session::run_into(const Tensor& images, const Request& request, const std::vector<Tensor>& results) const {
  const Tensor input = checked(images);
  const ComputeTeam team(threads_);
  const int64_t at_once = images_per_pass(input.shape(), request);
  const auto program = this->program(with_batch(input.shape(), at_once), request);
  const std::vector<ProgramOutput>& outputs = program->outputs();
  if (results.size() != outputs.size()) throw Error("session", str(outputs.size(), " results"), str(results.size()));
  for (size_t i = 0; i < results.size(); ++i) {
    const Tensor& result = results[i];
    const Shape shape = with_batch(outputs[i].shape, input.size(0));
    if (result.dtype() != DType::f32 || !result.is_contiguous() || !(result.shape() == shape))
      throw Error("session", str("a contiguous result f32 ", shape), str(name_of(result.dtype()), " ", result.shape()));
  }
  run_parts(input, request, results);
}

void Session::run_parts(const Tensor& input, const Request& request, const std::vector<Tensor>& results) const {
  const Division all = division(input.shape(), request);
  size_t bytes = 0;
  for (const Parts& parts : {all.dealt, all.shared}) {  // compiled here, not by the threads
    if (parts.count == 0) continue;
    bytes = std::max(bytes, program(with_batch(input.shape(), parts.longest()), request)->workspace_bytes());
    program(with_batch(input.shape(), parts.images / parts.count), request);
  }
  Workspace::reserve(*this, std::clamp<int64_t>(all.dealt.count, 1, threads_), bytes);
  auto run_all = [&](const Parts& parts, int64_t first, int64_t last) {
    for (int64_t p = first; p < last; ++p) run_images(input, request, parts.begin(p), parts.begin(p + 1), results);
  };
  parallel_for_balanced(0, all.dealt.count, 1, [&](int64_t first, int64_t last) { run_all(all.dealt, first, last); });
  run_all(all.shared, 0, all.shared.count);
}

void Session::run_images(const Tensor& input, const Request& request, int64_t first, int64_t last,
                         const std::vector<Tensor>& results) const {
  const int64_t batch = input.size(0), floats = input.numel() / batch;
  const auto part = program(with_batch(input.shape(), last - first), request);
  const Workspace workspace(*this, part->workspace_bytes());
  part->run({workspace.data(), input.data<float>() + first * floats});
  for (size_t i = 0; i < results.size(); ++i) {
    const int64_t row = results[i].numel() / batch;
    std::memcpy(results[i].data<float>() + first * row, workspace.data() + part->outputs()[i].offset,
                static_cast<size_t>((last - first) * row) * sizeof(float));
  }
}

void Session::profile(const Tensor& images, const std::function<void(size_t, double)>& after_step) const {
  const Tensor input = checked(images);
  const ComputeTeam team(threads_at_work(input.shape()));
  const auto program = this->program(with_batch(input.shape(), images_per_pass(input.shape())), {});
  const Workspace workspace(*this, program->workspace_bytes());
  program->run({workspace.data(), input.data<float>()}, after_step);
}

size_t Session::packed_bytes() const {
  const std::lock_guard lock(mutex_);
  return weights_.bytes();
}

}  // namespace vitrail::infer
