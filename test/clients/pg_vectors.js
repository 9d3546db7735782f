// Codes of the vector [1,2,3,4] by node-postgres, passed in all ways that people pass it: a line for each.
const { Client } = require('pg')

async function main() {
	const client = new Client()
	const vector = [1, 2, 3, 4]
	await client.connect()
	for (const [name, value] of Object.entries({ array: vector, 'typed array': Array.from(new Float32Array(vector)), string: JSON.stringify(vector), 'array string': '{1,2,3,4}' })) {
		const result = await client.query("SELECT sketcher_hash('items_code_model', $1)::text AS code", [value])
		console.log(`node-postgres, ${name}: ${result.rows[0].code}`)
	}
	await client.end()
}
main()
