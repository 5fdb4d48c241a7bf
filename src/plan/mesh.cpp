#include "plan/mesh.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "plan/spec.h"

namespace echelon {

namespace {

const std::vector<std::string> axis_names{"rows", "columns", "layers"};

// What lies along one dimension of the mesh becomes one degree of the plan.
std::string role_of(const std::string& dimension) {
  return dimension == "batch" ? "data" : dimension == "layers" ? "pipeline" : "tensor";
}

}  // namespace

const std::vector<std::string>& mesh_dimensions() {
  static const std::vector<std::string> names{"batch", "heads",   "hidden", "vocabulary", "channels",
                                              "units", "experts", "height", "layers"};
  return names;
}

void read_mesh(OptionReader& table, PlanSpec& plan) {
  if (!table.has("mesh") && !table.has("layout")) return;
  if (!table.require("mesh", "the layout is along its dimensions, as in mesh = [2, 4]")) return;
  if (!table.require("layout", "it says what lies along the mesh, as in layout = [\"batch:rows\", \"heads:columns\"]"))
    return;
  const auto extents = table.integers("mesh", {1}, 1, 1 << 16);
  if (extents.empty() || extents.size() > axis_names.size()) {
    table.problem("mesh", fmt::format("has {} dimensions; it may have one to {}", extents.size(), axis_names.size()));
    return;
  }
  for (const char* degree : {"data", "tensor", "pipeline"})
    if (table.has(degree)) table.problem(degree, "is what mesh and layout say already: leave it out");
  std::map<std::string, std::string> role_of_axis;  // by dimension of the mesh
  std::map<std::string, std::string> axis_of_role;
  for (const std::string& item : table.texts("layout", {})) {
    const std::size_t colon = item.find(':');
    const std::string dimension = item.substr(0, colon),
                      axis = colon == std::string::npos ? "" : item.substr(colon + 1);
    const auto known = std::ranges::find(mesh_dimensions(), dimension);
    const auto at =
        std::find(axis_names.begin(), axis_names.begin() + static_cast<std::ptrdiff_t>(extents.size()), axis);
    if (colon == std::string::npos) {
      table.problem("layout", fmt::format("has '{}', which is not DIMENSION:MESH, as in \"batch:rows\"", item));
      continue;
    }
    if (known == mesh_dimensions().end())
      table.problem("layout",
                    fmt::format("names '{}'{}; tensors have {}", dimension, did_you_mean(dimension, mesh_dimensions()),
                                fmt::join(mesh_dimensions(), ", ")));
    if (at == axis_names.begin() + static_cast<std::ptrdiff_t>(extents.size()))
      table.problem("layout", fmt::format("lays {} along '{}', and the mesh has {}", dimension, axis,
                                          fmt::join(axis_names.begin(), at, ", ")));
    if (known == mesh_dimensions().end() || at == axis_names.begin() + static_cast<std::ptrdiff_t>(extents.size()))
      continue;
    const std::string role = role_of(dimension);
    if (const auto [it, fresh] = role_of_axis.emplace(axis, role); !fresh && it->second != role)
      table.problem("layout", fmt::format("lays {} along {}, where another dimension of the same tensors lies already: "
                                          "batch, layers and a split of layers need a dimension of the mesh each",
                                          dimension, axis));
    if (const auto [it, fresh] = axis_of_role.emplace(role, axis); !fresh && it->second != axis)
      table.problem("layout", fmt::format("lays {} along {}, but {}: a layer is split along one dimension of the mesh",
                                          dimension, axis,
                                          role == "tensor" ? fmt::format("other layers are split along {}", it->second)
                                                           : fmt::format("it lies along {} already", it->second)));
    const auto extent = static_cast<int>(extents[static_cast<std::size_t>(at - axis_names.begin())]);
    (role == "data" ? plan.data : role == "pipeline" ? plan.pipeline : plan.tensor) = extent;
    if (role == "tensor") plan.dimensions.push_back(dimension);
  }
  for (std::size_t i = 0; i < extents.size(); ++i)
    if (extents[i] > 1 && !role_of_axis.contains(axis_names[i]))
      table.problem("layout", fmt::format("lays nothing along {}: its {} ranks would all compute the same",
                                          axis_names[i], extents[i]));
  if (plan.data == 0) plan.data = 1;  // the mesh is all there is
}

}  // namespace echelon
