// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sources of a layer's parameters: random initialisation or a checkpoint.  A layer requests its parameters by name and
// does not know which source it has.
#include <functional>
#include <memory>
#include <string>

#include "vitrail/tensor/tensor.h"

namespace vitrail {

// Fills a newly allocated tensor; `key` is unique to the parameter (derived from its path and the seed).
using Initializer = std::function<void(Tensor& parameter, uint64_t key)>;

// Provides the parameters of a model: one object per checkpoint, or one for random initialisation.
class ParamProvider {
 public:
  virtual ~ParamProvider() = default;
  // The parameter with this path and exactly this shape.  A provider that reads a file records a missing key or a wrong
  // shape and returns a meta tensor, so that finish() can report all of them.
  virtual Tensor get(const std::string& path, const Shape& shape, const Initializer& init) = 0;
  virtual bool has(const std::string& path) const = 0;
  // Throws one Error that lists all missing and unexpected keys and all wrong shapes.
  virtual void finish() = 0;
};

// A node in the tree of parameter names, such as "blocks.3.attn".  Cheap to copy; the provider must outlive it.
class ParamSource {
 public:
  explicit ParamSource(ParamProvider& provider, std::string path = "") : provider_(&provider), path_(std::move(path)) {}

  ParamSource child(const std::string& name) const { return ParamSource(*provider_, join(name)); }
  ParamSource child(int64_t index) const { return child(std::to_string(index)); }
  Tensor get(const std::string& name, const Shape& shape, const Initializer& init) const {
    return provider_->get(join(name), shape, init);
  }
  bool has(const std::string& name) const { return provider_->has(join(name)); }
  const std::string& path() const { return path_; }

 private:
  std::string join(const std::string& name) const { return path_.empty() ? name : path_ + "." + name; }
  ParamProvider* provider_;
  std::string path_;
};

// Random initialisation: each parameter is allocated as `dtype` and filled by its initialiser with a key of (seed,
// path).  On Device::meta nothing is allocated or filled.
class RandomParams : public ParamProvider {
 public:
  explicit RandomParams(uint64_t seed = 0, DType dtype = DType::f32, Device device = Device::cpu)
      : seed_(seed), dtype_(dtype), device_(device) {}
  Tensor get(const std::string& path, const Shape& shape, const Initializer& init) override;
  bool has(const std::string&) const override { return true; }
  void finish() override {}

 private:
  uint64_t seed_;
  DType dtype_;
  Device device_;
};

}  // namespace vitrail
