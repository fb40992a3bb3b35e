//! Strings without a closing quote, whose last character makes the parser panic.

use rustpython_vm::builtins::{PyBaseExceptionRef, PyInt};
use rustpython_vm::compiler::Mode;
use rustpython_vm::compiler::parser::{
    InterpolatedStringErrorType, LexicalErrorType, Mode as ParserMode, ParseErrorType,
    ParseOptions, parse_unchecked,
};
use rustpython_vm::{AsObject, PyResult, VirtualMachine};

/// Raises the error of a source that has a string without a closing quote.
///
/// The parser takes the last byte of such a string for its quote, and panics if that is a part of a
/// character. A source with other characters than ASCII is therefore parsed as ASCII first.
///
/// # Errors
///
/// `SyntaxError`, as for the source itself.
pub(crate) fn check(source: &str, file: &str, vm: &VirtualMachine) -> PyResult<()> {
    if source.is_ascii() {
        return Ok(());
    }
    let letter = |character: char| if character.is_ascii() { character } else { 'x' };
    let ascii: String = source.chars().map(letter).collect();
    let parsed = parse_unchecked(&ascii, ParseOptions::from(ParserMode::Module));
    if !parsed.errors().iter().any(|error| is_unclosed(&error.error)) {
        return Ok(());
    }
    match vm.compile_with_opts(&ascii, Mode::Exec, file, vm.compile_opts()) {
        Ok(_) => Ok(()),
        Err(error) => Err(with_line(error.into_pyexception(vm, Some(&ascii)), source, vm)),
    }
}

fn is_unclosed(error: &ParseErrorType) -> bool {
    match error {
        ParseErrorType::Lexical(error) => match error {
            LexicalErrorType::UnclosedStringError | LexicalErrorType::Eof => true,
            LexicalErrorType::FStringError(error) | LexicalErrorType::TStringError(error) => {
                is_unterminated(error)
            }
            _ => false,
        },
        ParseErrorType::FStringError(error) | ParseErrorType::TStringError(error) => {
            is_unterminated(error)
        }
        _ => false,
    }
}

fn is_unterminated(error: &InterpolatedStringErrorType) -> bool {
    use InterpolatedStringErrorType::{UnterminatedString, UnterminatedTripleQuotedString};
    matches!(error, UnterminatedString | UnterminatedTripleQuotedString)
}

/// Returns an error with the line of the source that it names.
fn with_line(error: PyBaseExceptionRef, source: &str, vm: &VirtualMachine) -> PyBaseExceptionRef {
    let number = error.as_object().get_attr("lineno", vm).ok();
    let number = number.and_then(|number| {
        number.downcast_ref::<PyInt>()?.as_bigint().to_string().parse::<usize>().ok()
    });
    let line = number.and_then(|number| source.split('\n').nth(number.checked_sub(1)?));
    if let Some(line) = line {
        let text = vm.ctx.new_str(format!("{}\n", line.trim_end_matches('\r')));
        // Without it, the error has the line as ASCII.
        let _ = error.as_object().set_attr("text", text, vm);
    }
    error
}
