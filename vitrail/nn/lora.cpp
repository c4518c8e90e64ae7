// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/lora.h"

#include <map>

#include "vitrail/base/error.h"
#include "vitrail/nn/linear.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/linear.h"

namespace vitrail::nn {
namespace {

constexpr const char *kA = ".lora_A.weight", *kB = ".lora_B.weight";

// Visits the modules of a tree, which it may change.
class Modules : public Visitor {
 public:
  explicit Modules(std::function<void(const std::string&, Module&)> visited) : visited_(std::move(visited)) {}
  void parameter(const std::string&, Tensor&) override {}
  void note(const std::string&, const std::string&) override {}
  void child(const std::string& name, Module& module) override {
    const std::string outer = path_;
    path_ += (path_.empty() ? "" : ".") + name;
    visited_(path_, module);
    module.visit(*this);
    path_ = outer;
  }

 private:
  std::function<void(const std::string&, Module&)> visited_;
  std::string path_;
};

// The adapted ones of the three equal parts of a layer's rows; none: the layer is not adapted.
std::vector<int64_t> adapted_parts(const std::string& path, const LoraOptions& options) {
  if (!path.starts_with("blocks.")) return {};
  if (options.layers == "all") return {0, 1, 2};
  return path.ends_with(".qkv") ? std::vector<int64_t>{0, 2} : std::vector<int64_t>{};
}

// The factors of B [out, parts · rank]: the scale where its columns serve its rows.
Tensor factors_of(const LoraOptions& options, int64_t out, const std::vector<int64_t>& parts) {
  if (parts.size() == 3) return Tensor::full({1}, options.scale());
  const Tensor factors = Tensor::zeros({out, std::ssize(parts) * options.rank});
  for (size_t i = 0; i < parts.size(); ++i) {
    factors.narrow(0, parts[i] * out / 3, out / 3)
        .narrow(1, static_cast<int64_t>(i) * options.rank, options.rank)
        .copy_(Tensor::full({out / 3, options.rank}, options.scale()));
  }
  return factors;
}

LowRank low_rank(const Linear& layer, const std::string& path, const LoraOptions& options,
                 const std::vector<int64_t>& parts, const ParamSource& params) {
  const int64_t rank = parts.size() == 3 ? options.rank : std::ssize(parts) * options.rank;
  const int64_t in = layer.in_features(), out = layer.out_features();
  return {.a = params.child("lora_A").get("weight", {rank, in}, init::torch_default(in)),
          .b = params.child("lora_B").get("weight", {out, rank}, init::zeros()),
          .scale = factors_of(options, out, parts),
          .dropout = Dropout(options.dropout, path + ".lora_dropout")};
}

}  // namespace

int64_t add_lora(Module& model, const LoraOptions& options, uint64_t seed) {
  RandomParams random(seed);
  int64_t layers = 0;
  Modules modules([&](const std::string& path, Module& module) {
    auto* const layer = dynamic_cast<Linear*>(&module);
    const std::vector<int64_t> parts = layer ? adapted_parts(path, options) : std::vector<int64_t>{};
    if (parts.empty()) return;
    layer->set_low_rank(low_rank(*layer, path, options, parts, ParamSource(random, path)));
    ++layers;
  });
  model.visit(modules);
  if (layers == 0) throw Error("lora.layers", "linear layers of that kind in the model's blocks", "none");
  return layers;
}

bool is_lora(const std::string& parameter) { return parameter.ends_with(kA) || parameter.ends_with(kB); }

std::vector<NamedTensor> merge_lora(const std::vector<NamedTensor>& parameters, double scale) {
  std::map<std::string, Tensor> parts;
  for (const NamedTensor& parameter : parameters) {
    if (is_lora(parameter.name)) parts[parameter.name] = parameter.tensor;
  }
  std::vector<NamedTensor> result;
  for (const NamedTensor& parameter : parameters) {
    if (is_lora(parameter.name)) continue;
    const std::string layer = parameter.name.substr(0, parameter.name.rfind('.'));
    const auto a = parts.find(layer + kA), b = parts.find(layer + kB);
    const bool adapted = parameter.name.ends_with(".weight") && a != parts.end() && b != parts.end();
    if (!adapted) {
      result.push_back(parameter);
      continue;
    }
    const Tensor scaled = ops::mul(b->second, Tensor::full({1}, scale));
    result.push_back({parameter.name, ops::add(parameter.tensor, ops::matmul(scaled, a->second))});
  }
  return result;
}

}  // namespace vitrail::nn
