// SPDX-License-Identifier: Apache-2.0
#pragma once
// Builds a graph of ONNX operators and writes it as a model file (onnx/onnx.proto).
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "vitrail/base/atomic_file.h"
#include "vitrail/ops/onnx_operators.h"

namespace vitrail::onnx {

using ops::Ints;
using Attribute = ops::OnnxAttribute;

// Extents that a caller chooses, in the shapes of inputs and outputs.
constexpr int64_t kBatch = -1, kNumPoints = -2, kHeight = -3, kWidth = -4;

// An input or output of the graph.  A negative extent is one of the above.
struct GraphValue {
  std::string name;
  DType dtype;  // f32, u8 or i64
  Ints shape;
};

struct ModelInfo {
  int opset = 17;
  std::string producer_version = {};
  std::vector<std::pair<std::string, std::string>> metadata = {};
};

// Files that are complete, but not at their paths yet.
using PendingFiles = std::vector<std::unique_ptr<AtomicFile>>;
void commit(const PendingFiles& files);  // together

// The file has what the outputs need.
class GraphBuilder : public ops::OnnxGraph {
 public:
  std::string constant(const Tensor& tensor, const std::string& name) override;
  std::string constant(const Ints& values) override;
  std::string scalar(double value) override;
  std::string integer(int64_t value, DType dtype);  // without axes; i64, i8 or u8
  std::string index(int64_t value) { return integer(value, DType::i64); }

  std::string cast(const std::string& x, DType dtype);
  std::string concat(const std::vector<std::string>& parts, int64_t axis);
  std::string extent(const std::string& x, int64_t axis);  // an axis of x has it, i64 [1]

  void add_input(const GraphValue& value);
  void add_output(const std::string& value, const GraphValue& output);  // gives `value` the output's name

  // Writes the model for `path`.  Weights of more than `inline_bytes` together go to PATH.data beside it, because a
  // protobuf message is limited to 2 GiB.
  [[nodiscard]] PendingFiles write(const std::filesystem::path& path, const ModelInfo& info,
                                   uint64_t inline_bytes) const;

 private:
  std::string add_node(const std::string& op, const std::vector<std::string>& inputs,
                       const std::vector<Attribute>& attributes) override;
  struct Initializer {
    std::string name;
    Tensor tensor;
  };
  struct Node {
    std::vector<std::string> inputs;
    std::string output, message;  // NodeProto
  };
  std::string unique(const std::string& wanted);
  std::set<std::string> needed_values() const;
  std::vector<Initializer> needed_initializers() const;
  std::string graph_without_weights() const;

  std::set<std::string> names_;
  std::map<std::string, std::string> known_;  // an operator or constant → its value
  std::vector<Node> nodes_;
  std::vector<GraphValue> inputs_, outputs_;
  std::vector<Initializer> initializers_;
};

}  // namespace vitrail::onnx
