// Text with named fields, for the prefixes of lines and the paths of files. Pure.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace muster::agent {

/// A field's text, or nothing if there is no field of that name.
using FieldText = std::function<std::optional<std::string>(std::string_view name)>;

/// `{name}` is asked of `in_braces`, `${name}` and `$name` of `after_dollar`; `$$` is one dollar sign. A name is
/// made of letters, digits and '_' and does not begin with a digit. What nobody knows stays as it is written.
std::string fill_fields(std::string_view text, const FieldText& in_braces, const FieldText& after_dollar);

}  // namespace muster::agent
