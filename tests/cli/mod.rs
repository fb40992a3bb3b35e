//! The commands of the program.

mod add;
mod add_attacks;
mod audit;
mod author;
mod broken;
mod cases;
mod command_line;
mod component_files;
mod debug_text;
mod doctor;
mod first_hour;
mod import;
mod importing;
mod local_tools;
mod mcp_config;
mod output;
mod registry;
mod save;
mod sections;
mod sign_in;
mod trust;
mod trusting;
mod values;
mod why;
