// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "vitrail/base/call_limit_internal.h"
#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/base/round_up_internal.h"
#include "vitrail/infer/compile_internal.h"
#include "vitrail/infer/executor_internal.h"
#include "vitrail/ops/recorder.h"

namespace vitrail::infer {
namespace {

// Enough for a full batch, a smaller last batch and single samples, each for a few variants and sizes.
constexpr size_t kMaxPlans = 16;
constexpr size_t kMaxPrograms = 32;

// The workspace of a part per thread: about a core's share of the last two cache levels.  A larger batch is split into
// parts, and each part runs through all steps, so that the output of a step is still in cache for the next step.
constexpr size_t kCachePerThread = size_t{2} << 20;

Shape with_batch(Shape shape, int64_t batch) {
  shape[0] = batch;
  return shape;
}

std::vector<TensorSpec> with_batch(std::span<const TensorSpec> specs, int64_t batch) {
  std::vector<TensorSpec> result(specs.begin(), specs.end());
  for (TensorSpec& spec : result) spec.shape = with_batch(spec.shape, batch);
  return result;
}

int64_t batch_of(std::span<const TensorSpec> inputs) {
  const int64_t batch = inputs.front().shape.rank() > 0 ? inputs.front().shape[0] : 0;
  for (const TensorSpec& input : inputs) {
    if (batch < 1 || input.shape.rank() == 0 || input.shape[0] != batch) {
      throw Error("session", "inputs with one batch size, at least 1, as their first extent", input.shape.to_string());
    }
  }
  return batch;
}

size_t sample_bytes(const Tensor& tensor, int64_t batch) {
  return static_cast<size_t>(tensor.numel() / batch) * size_of(tensor.dtype());
}

}  // namespace

const BatchPart& Plan::largest_part() const {
  const std::vector<BatchPart>& parts = parallel.empty() ? sequential : parallel;
  return *std::max_element(parts.begin(), parts.end(),
                           [](const BatchPart& a, const BatchPart& b) { return a.count < b.count; });
}

struct Executor::CompiledProgram {
  KeptVariant variant;
  std::vector<TensorSpec> inputs;
  std::shared_ptr<const Program> program;
};

// A workspace leased from the list of idle ones, or a new one.  It returns to the list when the run ends.
class Executor::Workspace {
 public:
  Workspace(const Executor& executor, size_t bytes) : executor_(executor) {
    const std::lock_guard lock(executor.mutex_);
    auto& idle = executor.idle_workspaces_;
    const auto fits = std::find_if(idle.begin(), idle.end(), [bytes](const auto& s) { return s->bytes() >= bytes; });
    if (fits != idle.end()) {
      storage_ = std::move(*fits);
      idle.erase(fits);
    } else {
      if (!idle.empty()) idle.pop_back();  // too small: the larger one replaces it
      storage_ = Storage::allocate(std::max<size_t>(bytes, 1));
    }
  }
  ~Workspace() {
    const std::lock_guard lock(executor_.mutex_);
    executor_.idle_workspaces_.push_back(std::move(storage_));
  }
  std::byte* data() const { return storage_->data(); }

  // Provides idle workspaces for `count` parallel runs, so that none of them allocates.
  static void reserve(const Executor& executor, int64_t count, size_t bytes) {
    const std::lock_guard lock(executor.mutex_);
    auto& idle = executor.idle_workspaces_;
    std::erase_if(idle, [bytes](const auto& s) { return s->bytes() < bytes; });
    while (std::ssize(idle) < count) idle.push_back(Storage::allocate(std::max<size_t>(bytes, 1)));
  }

 private:
  const Executor& executor_;
  std::shared_ptr<Storage> storage_;
};

Executor::Executor(Function function, PackedWeights weights, const ExecutorOptions& options)
    : function_(std::move(function)),
      threads_(options.threads > 0 ? options.threads : available_threads()),
      split_batch_(options.split_batch),
      attention_(options.attention),
      weights_(std::move(weights)) {}

Executor::~Executor() = default;

// The caller holds the lock.
std::shared_ptr<const Program> Executor::find_or_compile(const Variant& variant, std::vector<TensorSpec> specs) const {
  const auto found = std::find_if(programs_.begin(), programs_.end(), [&](const CompiledProgram& item) {
    return item.variant == variant && item.inputs == specs;
  });
  if (found != programs_.end()) {
    programs_.splice(programs_.begin(), programs_, found);
    return found->program;
  }
  std::vector<Tensor> inputs;
  for (const TensorSpec& spec : specs) inputs.push_back(Tensor::empty(spec.shape, spec.dtype, Device::meta));
  const ops::Recorder recorder;
  const std::vector<Tensor> outputs = function_(variant, inputs);
  auto program =
      std::make_shared<const Program>(compile(recorder, inputs, outputs, weights_, {.attention = attention_}));
  programs_.push_front({KeptVariant(variant), std::move(specs), program});
  if (programs_.size() > kMaxPrograms) programs_.pop_back();
  return program;
}

std::shared_ptr<const Program> Executor::program(const Variant& variant, std::span<const TensorSpec> inputs) const {
  const ComputeTeam team(threads_);
  const std::lock_guard lock(mutex_);
  return find_or_compile(variant, {inputs.begin(), inputs.end()});
}

// Called with the lock held.  Null if there is none.
std::shared_ptr<const Plan> Executor::find_plan(const Variant& variant, std::span<const TensorSpec> inputs) const {
  const auto found = std::find_if(plans_.begin(), plans_.end(), [&](const auto& plan) {
    return plan->variant == variant &&
           std::equal(inputs.begin(), inputs.end(), plan->inputs.begin(), plan->inputs.end());
  });
  if (found == plans_.end()) return nullptr;
  plans_.splice(plans_.begin(), plans_, found);
  return plans_.front();
}

std::shared_ptr<const Plan> Executor::plan(const Variant& variant, std::span<const TensorSpec> inputs) const {
  {
    const std::lock_guard lock(mutex_);
    if (auto found = find_plan(variant, inputs)) return found;
  }
  // Packing runs on the session's threads.  The team comes before the lock, in the order of run_into().
  const ComputeTeam team(threads_);
  const std::lock_guard lock(mutex_);
  if (auto found = find_plan(variant, inputs)) return found;
  plans_.push_front(make_plan(variant, inputs));
  if (plans_.size() > kMaxPlans) plans_.pop_back();
  return plans_.front();
}

// Every thread computes the same number of samples alone, so that their rows stay in one core's cache.  All threads
// together compute the remaining samples.
std::shared_ptr<const Plan> Executor::make_plan(const Variant& variant, std::span<const TensorSpec> inputs) const {
  auto plan = std::make_shared<Plan>();
  plan->variant = KeptVariant(variant);
  plan->inputs.assign(inputs.begin(), inputs.end());
  if (!split_batch_) {
    plan->sequential.push_back({0, 1, find_or_compile(variant, plan->inputs)});
  } else {
    plan->batch = batch_of(inputs);
    const size_t one = std::max<size_t>(1, find_or_compile(variant, with_batch(inputs, 1))->workspace_bytes());
    const int64_t per_thread = plan->batch / threads_;
    auto add_parts = [&](std::vector<BatchPart>& parts, int64_t first, int64_t samples, int64_t count) {
      for (int64_t p = 0; p < count; ++p) {
        const int64_t begin = first + samples * p / count, end = first + samples * (p + 1) / count;
        parts.push_back({begin, end - begin, find_or_compile(variant, with_batch(inputs, end - begin))});
      }
    };
    auto samples_in_cache = [&](int threads) {
      return std::max<int64_t>(1, static_cast<int64_t>(kCachePerThread * static_cast<size_t>(threads) / one));
    };
    const int64_t parallel = per_thread * threads_, remainder = plan->batch - parallel;
    add_parts(plan->parallel, 0, parallel, threads_ * ceil_div(per_thread, samples_in_cache(1)));
    add_parts(plan->sequential, parallel, remainder, ceil_div(remainder, samples_in_cache(threads_)));
  }
  for (const auto* parts : {&plan->parallel, &plan->sequential}) {
    for (const BatchPart& part : *parts) {
      plan->workspace_bytes = std::max(plan->workspace_bytes, part.program->workspace_bytes());
      for (const ProgramOutput& output : part.program->outputs()) {
        if (split_batch_ && (output.shape.rank() == 0 || output.shape[0] != part.count)) {
          throw Error("session", str("outputs whose first extent is the batch of ", part.count),
                      output.shape.to_string());
        }
      }
    }
  }
  for (const ProgramOutput& output : plan->largest_part().program->outputs()) {
    plan->outputs.push_back({DType::f32, split_batch_ ? with_batch(output.shape, plan->batch) : output.shape});
  }
  return plan;
}

std::vector<Tensor> Executor::run(const Plan& plan, std::span<const Tensor> inputs) const {
  std::vector<Tensor> results;
  for (const TensorSpec& output : plan.outputs) results.push_back(Tensor::empty(output.shape));
  run_into(plan, inputs, results);
  return results;
}

void Executor::run_into(const Plan& plan, std::span<const Tensor> inputs, std::span<const Tensor> results) const {
  if (results.size() != plan.outputs.size()) {
    throw Error("session", str(plan.outputs.size(), " results"), str(results.size()));
  }
  for (size_t i = 0; i < results.size(); ++i) {
    const Tensor& result = results[i];
    const Shape& shape = plan.outputs[i].shape;
    if (result.dtype() != DType::f32 || !result.is_contiguous() || !(result.shape() == shape)) {
      throw Error("session", str("a contiguous result f32 ", shape), str(name_of(result.dtype()), " ", result.shape()));
    }
  }
  const ComputeTeam team(threads_);
  const auto parallel = static_cast<int64_t>(plan.parallel.size());
  Workspace::reserve(*this, std::clamp<int64_t>(parallel, 1, threads_), plan.workspace_bytes);
  parallel_for_balanced(0, parallel, 1, [&, limit = call_limit()](int64_t first, int64_t last) {
    const BorrowedCallLimit borrowed(limit);
    for (int64_t p = first; p < last; ++p) run_part(plan, plan.parallel[p], inputs, results);
  });
  for (const BatchPart& part : plan.sequential) run_part(plan, part, inputs, results);
}

namespace {

Frame frame_of(const Plan& plan, const BatchPart& part, std::span<const Tensor> inputs, std::byte* workspace) {
  Frame frame{.workspace = workspace};
  for (size_t i = 0; i < inputs.size(); ++i) {
    frame.inputs[i] = inputs[i].raw() + static_cast<size_t>(part.first) * sample_bytes(inputs[i], plan.batch);
  }
  return frame;
}

}  // namespace

void Executor::run_part(const Plan& plan, const BatchPart& part, std::span<const Tensor> inputs,
                        std::span<const Tensor> results) const {
  const Workspace workspace(*this, part.program->workspace_bytes());
  part.program->run(frame_of(plan, part, inputs, workspace.data()));
  for (size_t i = 0; i < results.size(); ++i) {
    const size_t bytes = sample_bytes(results[i], plan.batch);
    std::memcpy(results[i].raw() + static_cast<size_t>(part.first) * bytes,
                workspace.data() + part.program->outputs()[i].offset, static_cast<size_t>(part.count) * bytes);
  }
}

void Executor::profile(const Plan& plan, std::span<const Tensor> inputs,
                       const std::function<void(size_t, double)>& after_step) const {
  const ComputeTeam team(plan.parallel.empty() ? threads_ : 1);
  const BatchPart& part = plan.largest_part();
  const Workspace workspace(*this, part.program->workspace_bytes());
  part.program->run(frame_of(plan, part, inputs, workspace.data()), after_step);
}

size_t Executor::packed_bytes() const {
  const std::lock_guard lock(mutex_);
  return weights_.bytes();
}

}  // namespace vitrail::infer
