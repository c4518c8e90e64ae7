#include "vitrail/infer/int8_calibration.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "vitrail/base/error.h"
#include "vitrail/infer/session.h"
#include "vitrail/nn/trace.h"

namespace vitrail::infer {
namespace {

constexpr const char* kLayers[] = {"attn.qkv", "attn.proj", "mlp.fc1", "mlp.fc2"};

// The largest |x| of each channel at the traced points whose names end as wanted.
class ChannelRanges {
 public:
  void see(const std::string& name, const Tensor& x) {
    const bool wanted = name.ends_with(".norm1") || name.ends_with(".norm2") || name.ends_with(".attn.merged");
    if (!wanted) return;
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

// Attention is linear in its values: the last third of qkv.
void smooth_values(const Parameters& parameters, const ChannelRanges& ranges, const std::string& attention) {
  const Tensor& proj = parameters.at(attention + ".proj.weight");
  const std::vector<float> divisors = divisors_of(ranges.at(attention + ".merged"), proj);
  const int64_t inner = proj.size(1);
  divide_rows(parameters.at(attention + ".qkv.weight").narrow(0, 2 * inner, inner), divisors);
  if (parameters.has(attention + ".qkv.bias")) {
    divide_rows(parameters.at(attention + ".qkv.bias").narrow(0, 2 * inner, inner), divisors);
  }
  multiply_columns(proj, divisors);
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
    smooth_values(parameters, ranges, path + ".attn");
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
