#include "vitrail/infer/int8_calibration.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "vitrail/base/error.h"
#include "vitrail/base/random.h"
#include "vitrail/infer/session.h"
#include "vitrail/kernels/linear.h"
#include "vitrail/nn/trace.h"

namespace vitrail::infer {
namespace {

constexpr const char* kLayers[] = {"attn.qkv", "attn.proj", "mlp.fc1", "mlp.fc2"};

// The largest |x| of each channel at the traced points whose names end as wanted.
class ChannelRanges {
 public:
  void see(const std::string& name, const Tensor& x) {
    if (!name.ends_with(".norm1") && !name.ends_with(".norm2")) return;
    const Tensor rows = x.to(DType::f32).contiguous();
    const int64_t channels = rows.size(-1);
    std::vector<float>& largest = ranges_[name];
    largest.resize(static_cast<size_t>(channels));
    for (int64_t i = 0; i < rows.numel(); ++i) {
      float& most = largest[static_cast<size_t>(i % channels)];
      most = std::max(most, std::abs(rows.data<float>()[i]));
    }
  }
  const std::vector<float>& at(const std::string& name) const { return ranges_.at(name); }

 private:
  std::map<std::string, std::vector<float>> ranges_;
};

ChannelRanges ranges_of(const models::VisionTransformer& model, const std::vector<Tensor>& images) {
  ChannelRanges ranges;
  const nn::TraceScope scope([&](const std::string& name, const Tensor& tensor) { ranges.see(name, tensor); });
  for (const Tensor& batch : images) model.forward_features(batch);
  return ranges;
}

// What each channel is divided by.  A channel or a column of zeros is left alone.
std::vector<float> divisors_of(const std::vector<float>& largest, const Tensor& weight) {
  const int64_t out = weight.size(0), in = weight.size(1);
  std::vector<float> divisors(static_cast<size_t>(in), 1.0f);
  for (int64_t c = 0; c < in; ++c) {
    float most = 0;
    for (int64_t r = 0; r < out; ++r) most = std::max(most, std::abs(weight.data<float>()[r * in + c]));
    const float ratio = most > 0 ? largest[static_cast<size_t>(c)] / most : 0.0f;
    if (ratio > 0) divisors[static_cast<size_t>(c)] = std::clamp(std::sqrt(ratio), 1e-3f, 1e3f);
  }
  return divisors;
}

// x [n, …] with row i of it divided by divisors[i].
void divide_rows(const Tensor& x, const std::vector<float>& divisors) {
  const int64_t width = x.numel() / x.size(0);
  for (int64_t i = 0; i < x.numel(); ++i) x.data<float>()[i] /= divisors[static_cast<size_t>(i / width)];
}
void multiply_columns(const Tensor& weight, const std::vector<float>& factors) {
  const int64_t in = weight.size(1);
  for (int64_t i = 0; i < weight.numel(); ++i) weight.data<float>()[i] *= factors[static_cast<size_t>(i % in)];
}

// The parameters of one model by name.
class Parameters {
 public:
  explicit Parameters(const nn::Module& model) {
    for (const nn::NamedTensor& parameter : model.named_parameters()) tensors_[parameter.name] = parameter.tensor;
  }
  bool has(const std::string& name) const { return tensors_.contains(name); }
  const Tensor& at(const std::string& name) const { return tensors_.at(name); }

 private:
  std::map<std::string, Tensor> tensors_;
};

void smooth_norm(const Parameters& parameters, const ChannelRanges& ranges, const std::string& norm,
                 const std::string& linear) {
  if (!parameters.has(norm + ".weight") || !parameters.has(norm + ".bias")) return;
  const Tensor& weight = parameters.at(linear + ".weight");
  const std::vector<float> divisors = divisors_of(ranges.at(norm), weight);
  divide_rows(parameters.at(norm + ".weight"), divisors);
  divide_rows(parameters.at(norm + ".bias"), divisors);
  multiply_columns(weight, divisors);
}

// Orthogonal [n, n]: the cosines of the discrete cosine transform (DCT-II), the columns with random signs.
std::vector<float> spreading_turn(int64_t n) {
  RandomStream random(random_key("spreading_turn"));
  std::vector<float> turn(static_cast<size_t>(n * n));
  for (int64_t column = 0; column < n; ++column) {
    const double sign = random.uniform() < 0.5 ? -1 : 1;
    for (int64_t row = 0; row < n; ++row) {
      const double length = std::sqrt((row == 0 ? 1.0 : 2.0) / static_cast<double>(n));
      const double angle = std::numbers::pi * (static_cast<double>(column) + 0.5) * static_cast<double>(row);
      turn[row * n + column] = static_cast<float>(sign * length * std::cos(angle / static_cast<double>(n)));
    }
  }
  return turn;
}

// x [n, width] becomes turn · x; x [height, n] with row stride ld becomes x · turnᵀ.
void turn_rows(const std::vector<float>& turn, int64_t n, float* x, int64_t width) {
  const std::vector<float> before(x, x + n * width);
  kernels::gemm(false, false, n, width, n, turn.data(), n, before.data(), width, false, x, width);
}
void turn_columns(const std::vector<float>& turn, int64_t n, float* x, int64_t height, int64_t ld) {
  std::vector<float> after(static_cast<size_t>(height * n));
  kernels::gemm(false, true, height, n, n, x, ld, turn.data(), n, false, after.data(), n);
  for (int64_t r = 0; r < height; ++r) std::copy_n(after.data() + r * n, n, x + r * ld);
}

// Attention is linear in its values: the last third of qkv, by head.
void turn_values(const Parameters& parameters, const std::string& attention, int64_t heads) {
  const Tensor& qkv = parameters.at(attention + ".qkv.weight");
  const Tensor& proj = parameters.at(attention + ".proj.weight");
  const int64_t out = proj.size(0), inner = proj.size(1), n = inner / heads, width = qkv.size(1);
  const std::vector<float> turn = spreading_turn(n);
  for (int64_t head = 0; head < heads; ++head) {
    const int64_t first = 2 * inner + head * n;
    turn_rows(turn, n, qkv.data<float>() + first * width, width);
    if (parameters.has(attention + ".qkv.bias")) {
      turn_rows(turn, n, parameters.at(attention + ".qkv.bias").data<float>() + first, 1);
    }
    turn_columns(turn, n, proj.data<float>() + head * n, out, inner);
  }
}

// Hands out copies of a model's parameters: a Session gives the memory of what it packs back.
class CopiedParams : public ParamProvider {
 public:
  explicit CopiedParams(const nn::Module& model) : parameters_(model) {}
  Tensor get(const std::string& path, const Shape&, const Initializer&) override {
    return parameters_.at(path).clone();
  }
  bool has(const std::string& path) const override { return parameters_.has(path); }
  void finish() override {}

 private:
  Parameters parameters_;
};

std::vector<Tensor> answers(const models::VisionTransformer& model, const std::vector<Tensor>& images,
                            const SessionOptions& options) {
  CopiedParams copies(model);
  const Session session(models::VisionTransformer(model.config(), ParamSource(copies)), options);
  std::vector<Tensor> results;
  for (const Tensor& batch : images) results.push_back(session.logits(batch));
  return results;
}

double distance(const std::vector<Tensor>& got, const std::vector<Tensor>& want) {
  double apart = 0, length = 0;
  for (size_t b = 0; b < want.size(); ++b) {
    for (int64_t i = 0; i < want[b].numel(); ++i) {
      const double g = got[b].data<float>()[i], w = want[b].data<float>()[i];
      apart += (g - w) * (g - w);
      length += w * w;
    }
  }
  return length > 0 ? std::sqrt(apart / length) : std::sqrt(apart);
}

std::vector<std::string> linear_layers(const models::VisionTransformer& model) {
  std::vector<std::string> layers;
  for (int64_t block = 0; block < model.config().depth; ++block) {
    for (const char* layer : kLayers) layers.push_back(str("blocks.", block, ".", layer));
  }
  return layers;
}

}  // namespace

void smooth_channels(models::VisionTransformer& model, const std::vector<Tensor>& images) {
  const ChannelRanges ranges = ranges_of(model, images);
  model.requires_grad(true);  // its parameters are to be written to: none is a mapped file's any more
  model.requires_grad(false);
  const Parameters parameters(model);
  for (int64_t block = 0; block < model.config().depth; ++block) {
    const std::string path = str("blocks.", block);
    turn_values(parameters, path + ".attn", model.config().num_heads);
    if (!model.config().norm_first) continue;  // what follows the norm is read by the residual too
    smooth_norm(parameters, ranges, path + ".norm1", path + ".attn.qkv");
    smooth_norm(parameters, ranges, path + ".norm2", path + ".mlp.fc1");
  }
}

std::vector<Int8Sensitivity> int8_sensitivity(const models::VisionTransformer& model,
                                              const std::vector<Tensor>& images) {
  const std::vector<Tensor> exact = answers(model, images, {});
  const std::vector<std::string> layers = linear_layers(model);
  std::vector<Int8Sensitivity> result;
  for (const std::string& layer : layers) {
    SessionOptions options{.precision = kernels::Precision::int8, .kept_precision = kernels::Precision::fp32};
    std::copy_if(layers.begin(), layers.end(), std::back_inserter(options.kept_from_int8),
                 [&layer](const std::string& other) { return other != layer; });
    result.push_back({layer, distance(answers(model, images, options), exact)});
  }
  std::stable_sort(result.begin(), result.end(), [](const auto& a, const auto& b) { return a.error > b.error; });
  return result;
}

std::vector<std::string> layers_to_keep(const std::vector<Int8Sensitivity>& sensitivity, double tolerance) {
  double squares = 0;
  for (const Int8Sensitivity& item : sensitivity) squares += item.error * item.error;
  std::vector<std::string> kept;
  for (const Int8Sensitivity& item : sensitivity) {
    if (squares <= tolerance * tolerance) break;
    squares -= item.error * item.error;
    kept.push_back(item.layer);
  }
  return kept;
}

}  // namespace vitrail::infer
