// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/module.h"

#include <charconv>
#include <cmath>

#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"

namespace vitrail::nn {
namespace {

std::string join(const std::string& path, const std::string& name) { return path.empty() ? name : path + "." + name; }

// Calls on_parameter(path, tensor) and on_module(path, module) for a tree of modules.
class Walker : public Visitor {
 public:
  std::function<void(const std::string&, Tensor&)> on_parameter = [](const std::string&, Tensor&) {};
  std::function<void(const std::string&, Module&)> on_module = [](const std::string&, Module&) {};

  void walk(Module& module) {
    on_module(path_, module);
    module.visit(*this);
  }
  void parameter(const std::string& name, Tensor& tensor) override {
    if (tensor.defined()) on_parameter(join(path_, name), tensor);
  }
  void child(const std::string& name, Module& module) override {
    const std::string outer = path_;
    path_ = join(path_, name);
    walk(module);
    path_ = outer;
  }
  void note(const std::string&, const std::string&) override {}

 private:
  std::string path_;
};

// Prints the children of one module.
class Printer : public Visitor {
 public:
  std::vector<std::pair<std::string, std::string>> lines;
  void parameter(const std::string&, Tensor&) override {}
  void child(const std::string& name, Module& module) override { lines.emplace_back(name, module.to_string()); }
  void note(const std::string& name, const std::string& text) override { lines.emplace_back(name, text); }
};

std::string indented(const std::string& text) {
  std::string result;
  for (const char c : text) {
    result += c;
    if (c == '\n') result += "  ";
  }
  return result;
}

// visit() takes members by reference; walking a const tree does not change them.
Module& mutable_of(const Module& module) { return const_cast<Module&>(module); }

}  // namespace

std::vector<NamedTensor> Module::named_parameters() const {
  std::vector<NamedTensor> result;
  Walker walker;
  walker.on_parameter = [&](const std::string& name, Tensor& tensor) { result.push_back({name, tensor}); };
  walker.walk(mutable_of(*this));
  return result;
}

std::vector<std::pair<std::string, const Module*>> Module::named_modules() const {
  std::vector<std::pair<std::string, const Module*>> result;
  Walker walker;
  walker.on_module = [&](const std::string& name, Module& module) { result.emplace_back(name, &module); };
  walker.walk(mutable_of(*this));
  return result;
}

int64_t Module::num_parameters() const {
  int64_t count = 0;
  for (const NamedTensor& p : named_parameters()) count += p.tensor.numel();
  return count;
}

Tensor Module::parameter(const std::string& name) const {
  for (const NamedTensor& p : named_parameters()) {
    if (p.name == name) return p.tensor;
  }
  throw Error(type(), "the name of a parameter", "'" + name + "'");
}

void Module::to(DType dtype) {
  Walker walker;
  walker.on_parameter = [&](const std::string&, Tensor& tensor) {
    if (!is_floating(tensor.dtype()) || tensor.dtype() == dtype) return;
    const bool wants_grad = autograd::requires_grad(tensor);
    tensor = tensor.to(dtype);
    if (wants_grad) autograd::set_requires_grad(tensor, true);
  };
  walker.walk(*this);
}

void Module::to(Device device) {
  Walker walker;
  walker.on_parameter = [&](const std::string&, Tensor& tensor) { tensor = tensor.to(device); };
  walker.walk(*this);
}

void Module::train(bool on) {
  Walker walker;
  walker.on_module = [on](const std::string&, Module& module) { module.training_ = on; };
  walker.walk(*this);
}

void Module::requires_grad(bool on) {
  Walker walker;
  walker.on_parameter = [on](const std::string&, Tensor& tensor) {
    if (on && tensor.storage()->is_borrowed()) tensor = tensor.clone();
    autograd::set_requires_grad(tensor, on);
  };
  walker.walk(*this);
}

std::string Module::to_string() const {
  Printer printer;
  mutable_of(*this).visit(printer);
  std::string text = type() + "(" + extra();
  if (printer.lines.empty()) return text + ")";
  for (size_t i = 0; i < printer.lines.size();) {
    size_t run = i + 1;  // PyTorch's ModuleList prints a run of equal items once: "(0-11): 12 x Block("
    while (type() == "ModuleList" && run < printer.lines.size() &&
           printer.lines[run].second == printer.lines[i].second) {
      ++run;
    }
    const bool many = run > i + 1;
    const std::string name =
        many ? printer.lines[i].first + "-" + printer.lines[run - 1].first : printer.lines[i].first;
    text += "\n  (" + name + "): " + (many ? std::to_string(run - i) + " x " : "") + indented(printer.lines[i].second);
    i = run;
  }
  return text + "\n)";
}

std::string python_float(double value) {
  char buffer[32];
  const double magnitude = std::abs(value);
  if (!std::isfinite(value)) return std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf";
  const bool scientific = magnitude != 0 && (magnitude < 1e-4 || magnitude >= 1e16);
  const auto format = scientific ? std::chars_format::scientific : std::chars_format::fixed;
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value, format).ptr;
  std::string text(buffer, end);
  if (!scientific && text.find('.') == std::string::npos) text += ".0";
  return text;
}

}  // namespace vitrail::nn
