#pragma once
// The values of a graph in its sliced one (graph/passes/slice.h): each is there whole, in parts, or both once somebody
// has asked. Asking adds what joins or cuts it to the sliced graph, and makes parameters when they are first read.
// Internal to graph/passes/. For one thread; the graphs outlive it.

#include <optional>
#include <vector>

#include "graph/passes/slice.h"

namespace echelon {

inline std::size_t as_index(int slice_or_id) { return static_cast<std::size_t>(slice_or_id); }

class SlicedValues {
 public:
  struct Place {
    Value whole;
    std::vector<Value> parts;
    Cut cut;
    std::vector<Value> wide;     // strips that overlap, with these `rows`; `parts` are cut out when somebody asks
    std::vector<RowRange> rows;  // of an image, by slice; empty: each slice's own strip
  };

  SlicedValues(const Graph& old, int slices, const Cuts& decided, Sliced& result);

  Place& place(Value old) { return places_[static_cast<std::size_t>(old.id)]; }
  std::size_t count() const { return places_.size(); }
  Cut cut_of(Value old);  // how it is there; of a parameter that nobody has read, how it was decided

  Value whole(Value old);
  const std::vector<Value>& parts(Value old, const Cut& cut);
  // In parts wherever it was made in parts: its own strips, if it was made in strips that overlap.
  const std::vector<Value>& as_made(Value old);
  // What the window sees of it for these rows of an output, in that slice.
  Value rows_for(Value old, int axis, int slice, const StripOp& strip, RowRange out);
  std::vector<RowRange> own_rows(Value old, int axis) const;
  bool is_new_parameter(Value old);  // that nobody has read

 private:
  const Parameter& parameter(Value old) const;
  std::optional<Cut> decided(Value old) const;
  void make_parameters(Value old, const Cut& cut);
  void cut_own_strips(Value old);
  Value from_grid(const std::vector<Value>& parts, int columns);
  std::vector<Value> into_grid(Value x, int columns);

  const Graph& old_;
  int slices_;
  const Cuts& decided_;
  std::vector<Place> places_;  // by old value
  Sliced& result_;
  Graph& g_ = result_.graph;
};

}  // namespace echelon
