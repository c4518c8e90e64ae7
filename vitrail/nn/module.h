// SPDX-License-Identifier: Apache-2.0
#pragma once
// Module: a node of the tree of layers.  Children are held by value; a layer lists them once, in visit(), and
// everything else (names, conversion, train and eval, the printed tree) follows from walking it.
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "vitrail/tensor/param_source.h"

namespace vitrail::nn {

class Module;

// Receives the parameters and children of a layer, in the order in which PyTorch prints them.
class Visitor {
 public:
  virtual ~Visitor() = default;
  virtual void parameter(const std::string& name, Tensor& tensor) = 0;  // an undefined tensor is no parameter
  virtual void child(const std::string& name, Module& module) = 0;
  virtual void note(const std::string& name, const std::string& text) = 0;  // printed as a child without parameters

  // A child that may be absent prints as Identity().
  template <class M>
  void child(const std::string& name, std::optional<M>& module) {
    module ? child(name, static_cast<Module&>(*module)) : note(name, "Identity()");
  }
};

struct NamedTensor {
  std::string name;  // the path in the tree: "blocks.0.attn.qkv.weight"
  Tensor tensor;
};

class Module {
 public:
  // path: the module's position in the tree ("blocks.3.attn"), for errors, traces and random keys.
  explicit Module(std::string path = "") : path_(std::move(path)) {}
  virtual ~Module() = default;
  Module(Module&&) = default;
  Module& operator=(Module&&) = default;

  virtual std::string type() const = 0;             // "LayerNorm"
  virtual std::string extra() const { return ""; }  // printed between the parentheses: "(768,), eps=1e-06"
  virtual void visit(Visitor& visitor) = 0;

  std::vector<NamedTensor> named_parameters() const;
  std::vector<std::pair<std::string, const Module*>> named_modules() const;  // this one first, with path ""
  int64_t num_parameters() const;
  Tensor parameter(const std::string& name) const;  // by path; throws Error if there is none

  void to(DType dtype);  // converts every parameter
  void to(Device device);
  void train(bool on = true);  // enables dropout and stochastic depth; a new module is in eval mode
  void eval() { train(false); }
  bool training() const { return training_; }
  // Makes every parameter a leaf that requires a gradient, or does not.  With `on`, parameters that are a mapped file's
  // memory become copies, because training writes to them.
  void requires_grad(bool on);

  // The tree as PyTorch prints it.
  std::string to_string() const;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  bool training_ = false;
};

// A list of equal modules: "blocks".
template <class M>
class ModuleList : public Module {
 public:
  explicit ModuleList(std::string path = "") : Module(std::move(path)) {}
  template <class... Args>
  M& emplace_back(Args&&... args) {
    return items_.emplace_back(std::forward<Args>(args)...);
  }
  std::string type() const override { return "ModuleList"; }
  void visit(Visitor& visitor) override {
    for (size_t i = 0; i < items_.size(); ++i) visitor.child(std::to_string(i), static_cast<Module&>(items_[i]));
  }
  size_t size() const { return items_.size(); }
  const M& operator[](size_t i) const { return items_[i]; }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }

 private:
  std::deque<M> items_;
};

// Python's repr of a float: 1e-06, 0.1, 0.0 — how PyTorch prints eps and p.
std::string python_float(double value);

}  // namespace vitrail::nn
