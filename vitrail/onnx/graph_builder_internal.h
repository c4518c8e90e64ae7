// SPDX-License-Identifier: Apache-2.0
#pragma once
// Builds a graph of ONNX operators and writes it as a model file (onnx/onnx.proto).
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "vitrail/base/atomic_file.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::onnx {

using Ints = std::vector<int64_t>;

struct Attribute {
  std::string name;
  std::variant<int64_t, float, Ints> value;
};

// An input or output of the graph.  An extent of -1 is the batch: the symbolic extent "batch".
struct GraphValue {
  std::string name;
  DType dtype;  // f32 or u8
  Ints shape;
};

struct ModelInfo {
  int opset = 17;
  std::string producer_version = {};
  std::vector<std::pair<std::string, std::string>> metadata = {};
};

// Values are named.  Every operator here has one output, whose name node() returns.
class GraphBuilder {
 public:
  // Two equal calls give the same value: an operator is computed once.
  std::string node(const std::string& op, const std::vector<std::string>& inputs,
                   const std::vector<Attribute>& attributes = {});
  std::string constant(const Tensor& tensor, const std::string& name);  // f32 or i64; may be a strided view
  std::string constant(const Ints& values);
  std::string scalar(double value);

  std::string reshape(const std::string& x, const Ints& shape) { return node("Reshape", {x, constant(shape)}); }
  std::string transpose(const std::string& x, const Ints& order) { return node("Transpose", {x}, {{"perm", order}}); }
  std::string slice(const std::string& x, const Ints& axes, const Ints& starts, const Ints& ends);

  void add_input(const GraphValue& value);
  void add_output(const std::string& value, const GraphValue& output);  // gives `value` the output's name

  // Writes the model to `path`.  Weights of more than `inline_bytes` together go to PATH.data beside it, because a
  // protobuf message is limited to 2 GiB.
  void write(const std::filesystem::path& path, const ModelInfo& info, uint64_t inline_bytes) const;

 private:
  struct Initializer {
    std::string name;
    Tensor tensor;
  };
  std::string unique(const std::string& wanted);
  uint64_t weight_bytes() const;
  std::string graph_without_weights() const;

  std::set<std::string> names_;
  std::map<std::string, std::string> known_;  // an operator or constant → its value
  std::vector<std::string> nodes_;            // NodeProto messages
  std::vector<GraphValue> inputs_, outputs_;
  std::vector<Initializer> initializers_;
};

}  // namespace vitrail::onnx
