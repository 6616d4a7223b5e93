#include "trainers/training/option_table.hpp"

#include <memory>

namespace muster::trainers {

CLI::Option* OptionTable::agreed_presence(const std::string& name, std::filesystem::path& value,
                                          const std::string& what) {
  return agreed_as(name, value, what, [&value] { return value.empty() ? "none" : "one"; });
}

CLI::Option* OptionTable::agreed_flag(const std::string& name, const std::function<void()>& when_given,
                                      const std::string& what) {
  const auto given = std::make_shared<bool>(false);
  const auto note = [given, when_given] {
    *given = true;
    when_given();
  };
  agreed_.emplace_back(name, [given] { return *given ? "given" : "not given"; });
  return app_.add_flag_callback(name, note, what);
}

void OptionTable::remove(const std::string& name) {
  app_.remove_option(app_.get_option(name));
  std::erase_if(agreed_, [&](const auto& entry) { return entry.first == name; });
}

Description OptionTable::agreement() const {
  Description all;
  for (const auto& [name, text] : agreed_) all.emplace_back(name, text());
  return all;
}

}  // namespace muster::trainers
